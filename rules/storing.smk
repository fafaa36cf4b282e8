"""Archive and tables <-> a bucket of S3-compatible storage.

in:  push: raw results, and tables up to date; pull: none
out: none here; `storage` of the configuration names the bucket. What pull brings lies in the archive
"""


rule push:
    """Bring to the bucket what it lacks; nothing of the archive there is replaced or removed. Never attacks."""
    input:
        pushed,
    log:
        "logs/push.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        storage=config.get("storage", {}),
    script:
        "../scripts/push.py"


rule pull:
    """Bring here what the bucket holds and the archive lacks; nothing here is replaced or removed. Never attacks."""
    input:
        pulled_alone,
    log:
        "logs/pull.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        storage=config.get("storage", {}),
    script:
        "../scripts/pull.py"
