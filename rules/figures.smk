"""Pages -> their charts as figures for papers.

in:  the page of a campaign, of a comparison or of a variant
out: PDF and SVG of each of its charts, which Snakemake's own report shows too
"""


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
