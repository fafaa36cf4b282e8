"""The site -> where others read it.

in:  the site, up to date
out: none here; a publication at the destination that config/config.yaml names
"""


rule publish:
    """Whole or not at all, only what changed, and nothing when nothing did. Never attacks."""
    input:
        every_table,
        whole_site,
        figures_drawn,
        destination_declared,
    log:
        "logs/publish.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        folders=FOLDERS,
        to=config.get("publish", {}),
    script:
        "../scripts/publish.py"
