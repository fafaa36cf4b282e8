"""Is the archive still what was collected?

in:  every file of the archive, the checksums beside its runs
out: none; what is seen for the first time is recorded below <tables>/.checksums
"""


rule verify:
    """Hash every file again and name those that changed, vanished or appeared. Never attacks."""
    log:
        "logs/verify.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
    script:
        "../scripts/verify.py"
