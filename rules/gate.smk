"""Did it get slower since? For continuous integration.

in:  cells and runs of every campaign, and what `gate:` of the configuration allows
out: gate.json beside the pages; exit status 1 when a figure got worse than that
"""


rule gate:
    """Judge the newest complete campaign of each app and host against earlier ones. Never attacks."""
    input:
        every_table,
    log:
        "logs/gate.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        campaigns=archive_keys,
        candidates=candidates,
        gate=config["gate"],
        settings=settings_of_history,
    script:
        "../scripts/gate.py"
