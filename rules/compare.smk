"""Tables of several campaigns -> one table and one page per comparison of config/comparisons.yaml.

in:  runs and cells of the comparison's campaigns, as far as the archive holds them
out: its rows of table comparisons; what may be concluded; its page
"""


rule compare:
    """By both of the predecessor's averages and by ours. Reads no raw file."""
    input:
        analysed_of_comparison,
    output:
        [f"<tables>/{table}/{{comparison}}.parquet" for table in COMPARED],
    log:
        "logs/compare/{comparison}.log",
    benchmark:
        "benchmarks/compare/{comparison}.tsv"
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        comparison=declaration,
        campaigns=campaigns_of_comparison,
        tables_version=TABLES_VERSION,
        settings=settings_of_comparison,
    script:
        "../scripts/compare.py"


rule comparison_page:
    input:
        "<tables>/comparisons/{comparison}.parquet",
        analysed_of_comparison,
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
        comparison=declaration,
        campaigns=campaigns_of_comparison,
        variants=shown_of_comparison,
        options=PAGE,
        version=loadstone.__version__,
    script:
        "../scripts/comparison_page.py"
