"""Small tables -> the page on which readers ask them in SQL.

in:  the database, so all tables that it shows
out: the page, its tables as Arrow and DuckDB for browsers
"""


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
        campaigns=archive_keys,
        packages=packages,
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/ask_page.py"
