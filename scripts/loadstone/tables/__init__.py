"""From raw files to Parquet tables, statistics and the DuckDB file.

``convert`` reads raw files, cell by cell; ``analyse`` judges runs and computes statistics from those tables alone;
``database`` puts views over everything.
"""

# Part of every table's identity. Raise it when columns change, or what is in them for the same raw files: everything is
# then converted again. A reader of a further format needs nothing: cells with such files are converted anyway.
VERSION = 16
