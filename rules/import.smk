"""Results of other tools -> the archive, unchanged.

in:  config/imports.yaml and the files that it names
out: closed campaigns in the archive
"""


rule import:
    """Copy what config/imports.yaml declares and the archive does not have. Checks everything first; never attacks."""
    log:
        "logs/import.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        archive=config["archive"],
        preview=preview_of("import"),
    script:
        "../scripts/import_results.py"
