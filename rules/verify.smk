"""Check the archive, or a bundle, against its checksums.

in:  all files of the archive and the checksums of its runs; or the bundle named by `verify` in the configuration
out: checksums of files without recorded ones, below <tables>/.checksums; not an output of the rule
"""


rule verify:
    """Hash all files again and list those that changed, vanished or appeared. Never attacks."""
    log:
        "logs/verify.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    threads: every_core
    params:
        folders=FOLDERS,
        bundle=config["verify"],
        limit=config["verify_limit"],
        snakefile=str(CHECKOUT / "Snakefile"),
    script:
        "../scripts/verify.py"
