"""Facts about runs -> which of them count, and the statistics of every cell; and the database over all tables.

in:  the converted tables of a campaign
out: runs, cells and suggested tags of that campaign; the DuckDB database
"""


rule analyse:
    """Exclusion happens here and nowhere else. Reads no raw file."""
    input:
        converted,
    output:
        f"<tables>/runs/{PART}",
        f"<tables>/cells/{PART}",
        f"<tables>/cells_all/{PART}",
        f"<tables>/suggestions/{PART}",
    log:
        f"logs/analyse/{KEY}.log",
    benchmark:
        f"benchmarks/analyse/{KEY}.tsv"
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        known=known,
    script:
        "../scripts/analyse.py"


rule inventory:
    """Which campaigns, comparisons and trace dumps there are, so that one that went away is noticed for ever after."""
    output:
        "<tables>/.inventory/{nth}",
    log:
        "logs/inventory/{nth}.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        held=held,
    script:
        "../scripts/inventory.py"


rule database:
    """Views of every table, over exactly the campaigns that the archive holds."""
    input:
        inventory,
        analysed,
        compared,
        traced,
    output:
        "<database>",
    log:
        "logs/database.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        campaigns=archive_keys,
        comparisons=comparisons_made,
        dumps=every_dump,
    script:
        "../scripts/database.py"
