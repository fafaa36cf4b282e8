"""Site, archive and tables -> publication, bucket or bundle.

in:  raw results; up-to-date tables and site
out: a publication, objects in a bucket or a bundle, as declared in config/config.yaml; pulled files in the archive.
     None of these are outputs of rules
"""


rule publish:
    """Publish the site, complete or not at all. Transfers only changes. Never attacks."""
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
    """Upload what the bucket does not have; never replaces or removes archive files there. Never attacks."""
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
    """Download what the archive does not have; never replaces or removes files here. Never attacks."""
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
    """Write everything into one file, complete or not at all, with the same bytes on all machines. Never attacks."""
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
