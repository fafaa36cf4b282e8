"""Open sweeps and collect what they lack.

in:  config/config.yaml, the plans in the archive
out: runs in the archive; markers below results/.collected
"""


rule open:
    """Write the plan of the configured sweep into the archive, or say which one is still open."""
    params:
        config=config,
    log:
        "logs/open.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    script:
        "../scripts/open_sweep.py"


rule collect:
    """One missing run, by attacking the target. Alone on the machine; an existing run is never touched."""
    output:
        touch(f"results/.collected/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}"),
    params:
        archive=config["archive"],
        target=config.get("target", {}),
    log:
        f"logs/collect/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}.log",
    benchmark:
        f"benchmarks/collect/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}.tsv"
    threads: workflow.cores
    resources:
        attack=1,
    priority: collection_rank
    localrule: True
    conda:
        "../envs/collect.yaml"
    script:
        "../scripts/collect.py"


rule complete:
    """All planned runs of a campaign are there: write its completion_time.txt."""
    input:
        collections,
    output:
        touch(f"results/.collected/{KEY}/complete.{{nth}}"),
    params:
        archive=config["archive"],
    log:
        f"logs/complete/{KEY}/{{nth}}.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    script:
        "../scripts/complete.py"
