"""Converted tables -> valid runs, statistics and conclusions; the database over all tables; the gate.

in:  the converted tables of a campaign; cells and runs of the campaigns of a comparison, or of all campaigns
out: runs, cells, conclusions and suggested tags of each campaign; one table per comparison; the history of cells and
     the DuckDB database over all campaigns; gate.json next to the pages
"""


rule tables:
    """Build only the tables and the database."""
    input:
        every_table,


rule analyse:
    """Exclude runs (only this rule does), then compute statistics and conclusions. Reads no raw files."""
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
        declared=campaign_declarations,
        settings=settings,
    script:
        "../scripts/analyse.py"


rule compare:
    """The table of one comparison: the predecessor's two averages and ours. Reads no raw files."""
    input:
        tables_compared,
    output:
        [f"<tables>/{table}/{{comparison}}.parquet" for table in COMPARED],
    log:
        "logs/compare/{comparison}.log",
    benchmark:
        "benchmarks/compare/{comparison}.tsv"
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        comparison=comparison,
        campaigns=campaigns_compared,
        tables_version=TABLES_VERSION,
        settings=settings_of_comparison,
    script:
        "../scripts/compare.py"


rule database:
    """The history of all cells and the views of all tables, for exactly the campaigns in the archive.

    Its marker detects that a campaign, comparison or trace dump was removed, without Snakemake's records.
    """
    input:
        analysed,
        compared,
        converted_dumps,
    output:
        "<database>",
        HISTORY,
        inventory(None),
    log:
        "logs/database.log",
    benchmark:
        "benchmarks/database.tsv"
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        campaigns=CAMPAIGNS,
        comparisons=list(DECLARED.compared),
        dumps=[dump.fields() for dump in SNAPSHOT.dumps.values()],
        notes=DECLARED.notes(),
        settings=DECLARED.history_settings,
        fingerprint=SNAPSHOT.inventory_fingerprint(list(DECLARED.compared)),
    script:
        "../scripts/database.py"


rule gate:
    """Judge the newest complete campaign of each app and host against earlier ones. Never attacks.

    gate.json is not an output: Snakemake would remove it when the gate fails.
    """
    input:
        every_table,
    log:
        "logs/gate.log",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    params:
        folders=FOLDERS,
        campaigns=CAMPAIGNS,
        candidates=DECLARED.gate_candidates(),
        gate=config["gate"],
        settings=DECLARED.history_settings,
    script:
        "../scripts/gate.py"
