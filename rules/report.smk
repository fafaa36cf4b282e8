"""Tables -> the site.

in:  the history and the database of all campaigns; the pages of pages.smk
out: the history pages of variants, the query page, the start page, the lists, and files shared by all pages
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


rule shared_assets:
    """Files shared by all pages: the site's own, and the chart library, which is not rewritten if it exists."""
    input:
        rebuild_marker("assets"),
    output:
        update(ASSETS),
    log:
        "logs/report/assets.log",
    benchmark:
        "benchmarks/report/assets.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        digest=assets_digest(),
    script:
        "../scripts/shared_assets.py"


rule variant_pages:
    """The history of cells -> the pages of all variants, in one job: a page takes less time than starting a job.

    Its outputs are known from the folders of the archive before any job runs: a variant without figures also has a
    page. It reads only the history, so that a new campaign takes little time here.
    """
    input:
        HISTORY,
        rebuild_marker("variants"),
    output:
        "<reports>/variants.html",
        expand("<reports>/variants/{slug}.html", slug=DECLARED.variant_pages),
    log:
        "logs/report/variants.log",
    benchmark:
        "benchmarks/report/variants.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        campaigns=CAMPAIGNS,
        names=[list(name) for name in DECLARED.variant_pages.values()],
        variants=DECLARED.appearance(),
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/variant_pages.py"


rule ask_page:
    """Small tables -> the query page. Without DuckDB for browsers (`make ask`) it only lists the tables."""
    input:
        "<database>",
        rebuild_marker("ask"),
    output:
        "<reports>/ask.html",
    log:
        "logs/report/ask.log",
    benchmark:
        "benchmarks/report/ask.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        campaigns=CAMPAIGNS,
        packages=packages,
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/ask_page.py"


rule index:
    """All tables -> the start page and the lists. Last, because they link to all other pages."""
    input:
        analysed,
        result_pages,
        variant_pages,
        "<database>",
        "<reports>/ask.html",
        rebuild_marker("index"),
    output:
        PAGES_OVER_ALL,
    log:
        "logs/report/index.log",
    benchmark:
        "benchmarks/report/index.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        dumps=[dump.fields() for dump in SNAPSHOT.dumps.values()],
        purposes=DECLARED.purposes(),
        not_in_archive=DECLARED.not_in_archive(),
        comparisons=[DECLARED.comparison(name) for name in DECLARED.comparisons],
        variants=DECLARED.appearance(),
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/index_page.py"
