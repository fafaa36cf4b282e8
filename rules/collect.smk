"""Open sweeps and collect their missing runs; show what a sweep needs and changes in a cluster; restore clusters.

in:  config/config.yaml, the plans in the archive, the cluster
out: runs, or records of their failures, in the archive; markers below results/.collected; <reports>/progress.html
"""


rule attacks:
    """Collect the missing runs, without tables and pages."""
    input:
        cluster_to_put_back,
        completions,


rule open:
    """Write the plan of the configured sweep into the archive, unless one is still open."""
    log:
        "logs/open.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=DECLARED.whole_config,
        preview=preview_of("open"),
    script:
        "../scripts/open_sweep.py"


rule extend:
    """Plan what the newest complete campaign lacks of the configuration: more runs, further variants or rates."""
    log:
        "logs/extend.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=DECLARED.whole_config,
        preview=preview_of("extend"),
    script:
        "../scripts/extend.py"


rule collect:
    """Attack the target for one missing run. One at a time on this machine; existing runs are never touched.

    The marker means that the run was attempted: only the archive shows whether it has a result.
    """
    output:
        f"results/.collected/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}",
    log:
        f"logs/collect/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}.log",
    benchmark:
        f"benchmarks/collect/{KEY}/{{rate}}/{{variant}}/{{run}}.{{nth}}.tsv"
    priority: rank
    localrule: True
    conda:
        "../envs/collect.yaml"
    threads: every_core
    resources:
        attack=1,
    params:
        folders=FOLDERS,
        sweep=DECLARED.sweep_options,
        page=DECLARED.progress_options,
    script:
        "../scripts/collect.py"


rule complete:
    """After all planned runs of a campaign were attempted: retry failed ones, then write its completion_time.txt.

    Afterwards, even if this fails, the campaign no longer needs the target: a cluster is restored after the last one.
    """
    input:
        missing_runs,
    output:
        f"results/.collected/{KEY}/complete.{{nth}}",
    log:
        f"logs/complete/{KEY}/{{nth}}.log",
    priority: 1
    localrule: True
    conda:
        "../envs/collect.yaml"
    threads: every_core
    # It retries runs itself (`sweep.retries`); when it has ended, the cluster may no longer be available.
    retries: 0
    resources:
        attack=1,
    params:
        folders=FOLDERS,
        sweep=DECLARED.sweep_options,
        page=DECLARED.progress_options,
    script:
        "../scripts/complete.py"


rule plan:
    """Show what a sweep would change in the cluster, the order of runs, and the duration. Changes nothing."""
    log:
        "logs/plan.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=DECLARED.whole_config,
    script:
        "../scripts/plan.py"


rule rights:
    """Print the namespace, ServiceAccount, Roles and RoleBindings that a sweep needs."""
    log:
        "logs/rights.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=DECLARED.whole_config,
    script:
        "../scripts/rights.py"


rule restore:
    """Restore the cluster as it was before a killed sweep, from this machine or any other."""
    log:
        "logs/restore.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=DECLARED.whole_config,
    script:
        "../scripts/restore.py"


rule put_back:
    """Restore a cluster that an earlier sweep of this folder left changed; this command's keeper does it."""
    output:
        "results/.collected/put_back.{nth}",
    log:
        "logs/put_back/{nth}.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    script:
        "../scripts/put_back.py"
