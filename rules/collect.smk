"""Open sweeps and collect what they lack.

in:  config/config.yaml, the plans in the archive
out: runs, or records of why they failed, in the archive; markers below results/.collected; <reports>/progress.html
"""


rule open:
    """Write the plan of the configured sweep into the archive, or say which one is still open."""
    log:
        "logs/open.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=config,
    script:
        "../scripts/open_sweep.py"


rule collect:
    """One missing run, by attacking the target. Alone on the machine; an existing run is never touched.

    The marker means that it was tried: whether it has a result, the archive says.
    """
    output:
        f"results/.collected/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}",
    log:
        f"logs/collect/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}.log",
    benchmark:
        f"benchmarks/collect/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}.tsv"
    priority: collection_rank
    localrule: True
    conda:
        "../envs/collect.yaml"
    threads: every_core
    resources:
        attack=1,
    params:
        folders=FOLDERS,
        sweep=SWEEP,
        page=PROGRESS,
    script:
        "../scripts/collect.py"


rule complete:
    """All planned runs of a campaign were tried: try again those that failed, then write its completion_time.txt.

    After that, and also when it fails, the campaign needs the target no more: a cluster is given back after the last one.
    """
    input:
        collections,
    output:
        f"results/.collected/{KEY}/complete.{{nth}}",
    log:
        f"logs/complete/{KEY}/{{nth}}.log",
    priority: 1
    localrule: True
    conda:
        "../envs/collect.yaml"
    threads: every_core
    # `sweep.retries` says how often it tries; once it has ended, the cluster may be gone.
    retries: 0
    resources:
        attack=1,
    params:
        folders=FOLDERS,
        sweep=SWEEP,
        page=PROGRESS,
    script:
        "../scripts/complete.py"
