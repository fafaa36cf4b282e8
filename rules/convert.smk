"""Raw results and trace dumps -> Parquet tables, one job per campaign or dump.

in:  the campaign's folder in the archive; _trace_dumps/traces-*.json.zst
out: requests, summaries, resources, planned, failures, problems and facts about its runs; spans, trace_shares and
     problems of each dump; a marker with the fingerprint of the inputs
"""


rule convert:
    """Convert a campaign. Reads only cells whose files changed since the last time."""
    input:
        collected_first,
        before_update(collected_before),  # not an output of any job
    output:
        f"<tables>/.done/{KEY}/{{nth}}",
    log:
        f"logs/convert/{KEY}/{{nth}}.log",
    benchmark:
        f"benchmarks/convert/{KEY}/{{nth}}.tsv"
    conda:
        "../envs/pipeline.yaml"
    threads: every_core
    params:
        folders=FOLDERS,
        variants=DECLARED.variants.names(),
        redact=config["redact"],
    script:
        "../scripts/convert.py"


rule trace:
    """Convert a trace dump. Reads it again only if it changed or belongs to another campaign."""
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
        redact=config["redact"],
    script:
        "../scripts/traces.py"
