"""Tables -> the site.

in:  runs and cells of each campaign; the history of all
out: one page per campaign, one per variant through time, and the start page; when asked for, the charts of pages as figures for papers
"""


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
        update(SHARED),
    log:
        "logs/report/assets.log",
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        made_of=output.assets_digest(),
    script:
        "../scripts/shared_assets.py"


rule campaign_page:
    input:
        analysed_of_slug,
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
        campaign=campaign_of_slug,
        catalogued=catalogued_of_slug,
        folders=FOLDERS,
        variants=shown_of_slug,
        options=PAGE,
        version=loadstone.__version__,
    script:
        "../scripts/campaign_page.py"


rule variant_pages:
    """All in one job, for each takes less than starting one does."""
    input:
        HISTORY,
        lost("variants"),
    output:
        "<reports>/variants.html",
        expand("<reports>/variants/{slug}.html", slug=VARIANT_SLUGS),
    log:
        "logs/report/variants.log",
    benchmark:
        "benchmarks/report/variants.tsv"
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        campaigns=archive_keys,
        names=[list(name) for name in VARIANT_SLUGS.values()],
        variants={"declared": VARIANTS.declared, "seen": SEEN},
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/variant_pages.py"


rule index:
    input:
        analysed,
        pages,
        comparison_pages,
        trace_pages,
        variant_pages,
        "<database>",
        "<reports>/ask.html",
        lost("index"),
    output:
        PAGES_OVER_ALL,
    log:
        "logs/report/index.log",
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        dumps=every_dump,
        purposes=purposes,
        not_in_archive=not_in_archive,
        comparisons=[comparing.to_config(comparison) for comparison in COMPARISONS.values()],
        variants={"declared": VARIANTS.declared, "seen": SEEN},
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
