"""Tables -> the site.

in:  the history and the database of all campaigns; the pages of pages.smk
out: the start page, lists, histories of variants, the query page, and files shared by all pages
"""


rule report:
    """Analyse and report the results so far. Never attacks."""
    input:
        every_table,
        site,
        figures_reported,


rule request_rebuild:
    """A marker that requests a part of the site with missing files again (loadstone/report/site_layout.py)."""
    output:
        touch("<reports>/.made/{part}/{nth}"),
    localrule: True


rule index:
    """All tables -> the start page, lists, histories of variants, query page, and files shared by all pages.

    One job: each of them takes less time than starting a job. Last, because they link to all other pages, which are
    known from the folders of the archive before any job runs.
    """
    input:
        analysed,
        result_pages,
        HISTORY,
        "<database>",
        [rebuild_marker(part) for part in PARTS_OF_INDEX],
    output:
        [f"<reports>/{page}" for page in PAGES_OF_INDEX],
    log:
        "logs/report/index.log",
    benchmark:
        "benchmarks/report/index.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        campaigns=CAMPAIGNS,
        dumps=[dump.fields() for dump in SNAPSHOT.dumps.values()],
        purposes=DECLARED.purposes(),
        not_in_archive=DECLARED.not_in_archive(),
        comparisons=[DECLARED.comparison(name) for name in DECLARED.comparisons],
        names=[list(name) for name in DECLARED.variant_pages.values()],
        variants=DECLARED.appearance(),
        options=config.get("report", {}),
        packages=packages,
        assets=assets_digest(),
        version=loadstone.__version__,
    script:
        "../scripts/index_page.py"
