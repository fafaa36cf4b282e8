"""Site, archive and tables -> publication, bucket or bundle.

in:  raw results; tables and site, up to date
out: none here: a publication, objects of a bucket or a bundle, as declared in config/config.yaml. Pulled files are in
     the archive
"""


rule publish:
    """Publish the site, complete or not at all; only what changed is transferred. Never attacks."""
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
    """Upload what the bucket does not have; nothing of the archive there is replaced or removed. Never attacks."""
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
    """Download what the archive does not have from the bucket; nothing here is replaced or removed. Never attacks."""
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
    """Write everything into one file, complete or not at all, with the same bytes on every machine. Never attacks."""
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
