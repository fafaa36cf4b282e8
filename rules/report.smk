"""Tables -> the site.

in:  runs and cells of each campaign
out: one page per campaign and the start page
"""


rule campaign_page:
    input:
        analysed_of_slug,
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
        variants=VARIANTS.declared,
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/campaign_page.py"


rule index:
    input:
        analysed,
        pages,
        comparison_pages,
        trace_pages,
        "<database>",
    output:
        "<reports>/index.html",
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
        variants=VARIANTS.declared,
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/index_page.py"
