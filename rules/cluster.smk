"""A Kubernetes target: what a sweep would change, what it must be allowed to do, and putting a cluster back.

in:  config/config.yaml, the cluster
out: none; markers below results/.collected
"""


rule plan:
    """Say what a sweep would change in the cluster, in what order, and how long it will take. Changes nothing."""
    log:
        "logs/plan.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=config,
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
        config=config,
    script:
        "../scripts/rights.py"


rule restore:
    """Put the cluster back as it was before a sweep that was killed, from this machine or any other."""
    log:
        "logs/restore.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    params:
        config=config,
    script:
        "../scripts/restore.py"


rule put_back:
    """What an earlier sweep of this folder left is put back: by the session of this invocation."""
    output:
        "results/.collected/put_back.{nth}",
    log:
        "logs/put_back/{nth}.log",
    localrule: True
    conda:
        "../envs/collect.yaml"
    script:
        "../scripts/put_back.py"
