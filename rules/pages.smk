"""Tables -> one page per campaign, comparison and trace dump.

in:  runs and cells of a campaign or of a comparison's campaigns; spans of a dump
out: the page; for campaigns and comparisons also the data that the page loads, checksums and an RO-Crate
"""


rule campaign_page:
    """Runs and cells of one campaign -> its page, and the data that the page loads for each load."""
    input:
        tables_of_page,
        rebuild_marker("campaigns/{slug}"),
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
        catalogue_entry=catalogue_of_page,
        folders=FOLDERS,
        variants=appearance_of_page,
        options=DECLARED.page_options,
        redact=config["redact"],
        version=loadstone.__version__,
    script:
        "../scripts/campaign_page.py"


rule comparison_page:
    """Runs and cells of the campaigns of one comparison -> its page."""
    input:
        "<tables>/comparisons/{comparison}.parquet",
        tables_compared,
        rebuild_marker("comparisons/{comparison}"),
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
        redact=config["redact"],
        version=loadstone.__version__,
    script:
        "../scripts/comparison_page.py"


rule trace_page:
    """Spans of one dump -> its page."""
    input:
        converted_dump_of_page,
        rebuild_marker("traces/{slug}"),
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
