"""Raw results -> Parquet tables, one job per campaign.

in:  the campaign's folder in the archive
out: requests, summaries, resources, planned, problems and the facts about its runs, below the tables folder
"""


rule convert:
    """Re-reads only the cells whose files changed since the last time."""
    input:
        collected_first,
    output:
        f"<tables>/.done/{KEY}/{{nth}}",
    params:
        archive=config["archive"],
        tables=config["tables"],
        variants=VARIANTS.declared,
    log:
        f"logs/convert/{KEY}/{{nth}}.log",
    benchmark:
        f"benchmarks/convert/{KEY}/{{nth}}.tsv"
    threads: workflow.cores
    conda:
        "../envs/pipeline.yaml"
    script:
        "../scripts/convert.py"
