"""Pages -> their charts as figures for papers, and a page on one sheet.

in:  the page of a campaign, of a comparison or of a variant
out: a PDF and an SVG of each of its charts, also for Snakemake's own report; a PDF of one page
"""


rule page_figures:
    """All charts of one page, as PDF and SVG."""
    input:
        "<reports>/{kind}/{slug}.html",
        rebuild_marker("figures/{kind}/{slug}"),
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
    """Draw all charts of campaign, comparison and variant pages for papers. Never attacks."""
    input:
        every_table,
        figures_of_pages,
        rebuild_markers_of_figures,


rule summary_sheet:
    """What a page found, on one sheet of A4."""
    input:
        "<reports>/{kind}/{slug}.html",
    output:
        "<reports>/summaries/{kind}/{slug}.pdf",
    log:
        "logs/summaries/{kind}/{slug}.log",
    conda:
        "../envs/report.yaml"
    params:
        font=config.get("figures", {}).get("font"),
        version=loadstone.__version__,
    script:
        "../scripts/summary_sheet.py"


rule summary:
    """Write what each campaign and comparison found as a PDF of one page. Never attacks."""
    input:
        every_table,
        summary_sheets,
