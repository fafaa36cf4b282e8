"""Site, archive and tables -> where others read or check them.

in:  raw results; tables and site, up to date
out: none here: a publication, objects of a bucket or a bundle, where config/config.yaml says. What pull brings lies in
     the archive
"""


rule publish:
    """Whole or not at all, only what changed, and nothing when nothing did. Never attacks."""
    input:
        every_table,
        site,
        figures_drawn,
    log:
        "logs/publish.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        to=config.get("publish", {}),
        preview=preview_of("publish"),
    script:
        "../scripts/publish.py"


rule push:
    """Bring to the bucket what it lacks; nothing of the archive there is replaced or removed. Never attacks."""
    input:
        tables_to_push,
    log:
        "logs/push.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        storage=config.get("storage", {}),
        preview=preview_of("push"),
    script:
        "../scripts/push.py"


rule pull:
    """Bring here what the bucket holds and the archive lacks; nothing here is replaced or removed. Never attacks."""
    log:
        "logs/pull.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        storage=config.get("storage", {}),
        preview=preview_of("pull"),
    script:
        "../scripts/pull.py"


rule bundle:
    """Complete or not at all, and the same to the byte wherever it is made. Never attacks."""
    input:
        every_table,
        site,
        figures_drawn,
    log:
        "logs/bundle.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        declared=config["bundle"],
        campaigns=CAMPAIGNS,
        comparisons=DECLARED.compared,
        dumps=[dump.fields() for dump in SNAPSHOT.dumps.values()],
        settings={name: config[name] for name in configuration.SETTINGS},
    script:
        "../scripts/bundle.py"
