"""Tables -> the site.

in:  runs and cells of each campaign and comparison, spans of each trace dump; the history and the database of all
out: one page each, one per variant through time, the page on which readers ask in SQL, and the start page; when asked
     for, the charts of pages as figures for papers
"""


rule report:
    """Analysis and report of what is there; never attacks."""
    input:
        every_table,
        site,
        figures_reported,


rule page_lost:
    """Nothing but a name: what is asked for by a new one, of all that lies beside a page, is made again."""
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


rule campaign_page:
    """Runs and cells of one campaign -> its page, with data of each load that the page asks for."""
    input:
        tables_of_page,
        lost("campaigns/{slug}"),
    output:
        "<reports>/campaigns/{slug}.html",
    log:
        "logs/report/{slug}.log",
    benchmark:
        "benchmarks/report/{slug}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        campaign=key_of_page,
        catalogued=catalogue_of_page,
        folders=FOLDERS,
        variants=appearance_of_page,
        options=DECLARED.page_options,
        version=loadstone.__version__,
    script:
        "../scripts/campaign_page.py"


rule comparison_page:
    """Runs and cells of the campaigns of one comparison -> its page."""
    input:
        "<tables>/comparisons/{comparison}.parquet",
        tables_compared,
        lost("comparisons/{comparison}"),
    output:
        "<reports>/comparisons/{comparison}.html",
    log:
        "logs/report/comparison_{comparison}.log",
    benchmark:
        "benchmarks/report/comparison_{comparison}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        comparison=comparison,
        campaigns=campaigns_compared,
        variants=appearance_of_comparison,
        options=DECLARED.page_options,
        version=loadstone.__version__,
    script:
        "../scripts/comparison_page.py"


rule trace_page:
    """Spans of one dump -> its page."""
    input:
        converted_dump_of_page,
        lost("traces/{slug}"),
    output:
        "<reports>/traces/{slug}.html",
    log:
        "logs/report/traces/{slug}.log",
    benchmark:
        "benchmarks/report/traces/{slug}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        dump=dump_of_page,
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/trace_page.py"


rule variant_pages:
    """The history of cells -> the page of every variant, in one job, for each takes less than starting one does."""
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
    """Without DuckDB for browsers (`make ask`) the page only says what there is to ask."""
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


rule page_figures:
    """Every chart of one page, as PDF and SVG."""
    input:
        "<reports>/{kind}/{slug}.html",
        lost("figures/{kind}/{slug}"),
    output:
        report(
            directory("<reports>/figures/{kind}/{slug}"),
            patterns=["{name}.svg"],
            caption="../scripts/loadstone/report/captions/figure.rst",
            category="{kind}",
            subcategory="{slug}",
            labels={"figure": "{name}"},
        ),
    log:
        "logs/figures/{kind}/{slug}.log",
    benchmark:
        "benchmarks/figures/{kind}/{slug}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        figures=config.get("figures", {}),
        version=loadstone.__version__,
    script:
        "../scripts/page_figures.py"


rule figures:
    """Every chart of campaign, comparison and variant pages, for papers. Never attacks."""
    input:
        every_table,
        figures_of_pages,
        lost_figures,
