"""From raw files to Parquet tables, statistics and the DuckDB file.

``convert`` reads raw files, cell by cell; ``analyse`` judges runs and computes statistics from those tables alone;
``database`` puts views over everything.
"""
