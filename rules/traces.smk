"""Trace dumps -> their tables and pages, one job per dump.

in:  _trace_dumps/traces-*.json.zst in the archive
out: spans, trace_shares and problems of each dump below the tables folder; one page per dump
"""


rule trace:
    """Reads a dump again only when it changed or belongs to another campaign."""
    output:
        "<tables>/.dumps/{dump}/{nth}",
    log:
        "logs/traces/{dump}/{nth}.log",
    benchmark:
        "benchmarks/traces/{dump}/{nth}.tsv"
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        dump=dump_fields,
    script:
        "../scripts/traces.py"


rule trace_page:
    input:
        traced_dump,
        lost("traces/{slug}"),
    output:
        "<reports>/traces/{slug}.html",
    log:
        "logs/report/traces/{slug}.log",
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        dump=dump_of_slug,
        options=config.get("report", {}),
        version=loadstone.__version__,
    script:
        "../scripts/trace_page.py"
