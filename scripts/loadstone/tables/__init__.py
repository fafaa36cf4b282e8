"""From raw files to Parquet tables, statistics and the DuckDB file.

``convert`` reads raw files, cell by cell; ``analyse`` judges runs and computes statistics from those tables alone;
``database`` puts views over everything.
"""

# Part of every table's identity. Raise it when columns, what readers give or what either means changes: everything is
# then converted again.
VERSION = 11
