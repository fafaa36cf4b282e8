"""The archive and its tables in a bucket of S3-compatible storage: ``push`` and ``pull`` transfer what is missing.

``<prefix>/archive/...`` are the archive's files by their own names, every part percent-encoded (`archive.encode`),
``<prefix>/tables/...`` the tables, and ``<prefix>/pushing/...`` says who is writing now. ``names.py`` says which files
of an archive a bucket keeps and in which order they go, ``transfer.py`` transfers them.

Tables in a bucket are queried with Arrow's datasets (docs/buckets.md). A file system given to DuckDB would need fsspec
and lists all partitions itself; with a dataset DuckDB hands down conditions on folders.
"""
