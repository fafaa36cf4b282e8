"""Everything of an archive, or of some campaigns -> one file that others can check.

in:  raw results, tables and site, up to date
out: none here; the file that `bundle.path` of the configuration names
"""


rule bundle:
    """Complete or not at all, and the same to the byte wherever it is made. Never attacks."""
    input:
        every_table,
        whole_site,
        figures_drawn,
    log:
        "logs/bundle.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        declared=config["bundle"],
        campaigns=archive_keys,
        comparisons=campaigns_by_comparison,
        dumps=every_dump,
        settings={name: config[name] for name in configuration.SETTINGS},
    script:
        "../scripts/bundle.py"
