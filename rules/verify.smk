"""Check the archive, or a bundle, against its checksums.

in:  every file of the archive, the checksums of its runs; or the bundle that `verify` of the configuration names
out: none; the checksums of files that have none are recorded below <tables>/.checksums
"""


rule verify:
    """Hash every file again and name those that changed, vanished or appeared. Never attacks."""
    log:
        "logs/verify.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    threads: every_core
    params:
        folders=FOLDERS,
        bundle=config["verify"],
        snakefile=str(Path(workflow.basedir, "Snakefile")),
    script:
        "../scripts/verify.py"
