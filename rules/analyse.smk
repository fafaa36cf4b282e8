"""Facts about runs -> which of them count, and the statistics of every cell; and the database over all tables.

in:  the converted tables of a campaign
out: runs, what they are like and why requests failed, cells, suggested tags and conclusions of that campaign; the
     history of cells and the DuckDB database, over all campaigns
"""


rule analyse:
    """Exclusion happens here and nowhere else; then what may be concluded. Reads no raw file."""
    input:
        converted,
    output:
        [f"<tables>/{table}/{PART}" for table in ANALYSED],
    log:
        f"logs/analyse/{KEY}.log",
    benchmark:
        f"benchmarks/analyse/{KEY}.tsv"
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        known=known,
        settings=settings,
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
    """The history of every cell, and views of every table, over exactly the campaigns that the archive holds."""
    input:
        inventory,
        analysed,
        compared,
        traced,
    output:
        "<database>",
        HISTORY,
    log:
        "logs/database.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        campaigns=archive_keys,
        comparisons=comparisons_made,
        dumps=every_dump,
        notes=notes,
        settings=settings_of_history,
    script:
        "../scripts/database.py"
