"""Tables -> the site.

in:  the history and the database of all campaigns; the pages of pages.smk
out: the pages of variants through time, the page for SQL queries, the start page and the lists, and shared files of all
     pages
"""


rule report:
    """Analyse and report the results so far; never attacks."""
    input:
        every_table,
        site,
        figures_reported,


rule page_lost:
    """A marker that requests a part of the site again which has lost a file (loadstone/report/site_layout.py)."""
    output:
        touch("<reports>/.made/{part}/{nth}"),
    localrule: True


rule shared_assets:
    """The shared files of all pages: the chart library, which is not written again if it exists, and the site's own."""
    input:
        lost("assets"),
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
        made_of=output.assets_digest(),
    script:
        "../scripts/shared_assets.py"


rule variant_pages:
    """The history of cells -> the page of every variant, in one job, because each takes less time than starting a job.

    Its outputs follow from the archive's folders before any job runs: a variant without figures has a page that says
    so. It reads only the history, so that a new campaign costs little here.
    """
    input:
        HISTORY,
        lost("variants"),
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
    """Small tables -> the page for SQL. Without DuckDB for browsers (`make ask`) it only lists what can be queried."""
    input:
        "<database>",
        lost("ask"),
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
    """All tables -> the start page and the lists; last, because they link to every other page."""
    input:
        analysed,
        result_pages,
        variant_pages,
        "<database>",
        "<reports>/ask.html",
        lost("index"),
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
