"""Raw results -> Parquet tables, one job per campaign.

in:  the campaign's folder in the archive
out: requests, summaries, resources, planned, failures, problems and the facts about its runs, below the tables folder
"""


rule convert:
    """Re-reads only the cells whose files changed since the last time."""
    input:
        collected_first,
        before_update(collected_before),  # it stays as it is: nothing is to make it
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
        variants=VARIANTS.names(),
    script:
        "../scripts/convert.py"
