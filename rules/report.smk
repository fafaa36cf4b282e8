"""Tables -> the site.

in:  the history and the database of all campaigns; the pages of pages.smk
out: the pages of variants through time, the page on which readers ask in SQL, the start page and the lists, and what
     all pages load
"""


rule report:
    """Analysis and report of what is there; never attacks."""
    input:
        every_table,
        site,
        figures_reported,


rule page_lost:
    """A marker by which a part of the site that has lost a file is asked for again (loadstone/report/site_layout.py)."""
    output:
        touch("<reports>/.made/{part}/{nth}"),
    localrule: True


rule shared_assets:
    """What all pages load: the library that draws, which is not made again where it is, and the site's own files."""
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
    """The history of cells -> the page of every variant, in one job, for each takes less than starting one does.

    Its outputs are known from the archive's folders before any job runs: a variant without figures has a page that says
    so. It reads the history alone, so a new campaign costs these pages one look at it.
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
    """Small tables -> the page for SQL. Without DuckDB for browsers (`make ask`) it only says what can be queried."""
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
    """All tables -> the start page and the lists, last, for they lead to every other page."""
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
