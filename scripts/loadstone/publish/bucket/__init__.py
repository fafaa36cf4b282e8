"""The archive and the tables in a bucket of S3-compatible storage: ``push`` brings there what it lacks, ``pull`` here.

``<prefix>/archive/...`` are the archive's files by their own names, every part percent-encoded (`archive.encode`),
``<prefix>/tables/...`` the tables, and ``<prefix>/pushing/...`` says who is writing now. ``names.py`` says what of an
archive is kept and in which order it goes, ``store.py`` is the bucket, ``known.py`` remembers what was compared.

Tables in a bucket are queried with Arrow's datasets (docs/buckets.md). A file system given to DuckDB would need fsspec
and lists all partitions itself; with a dataset DuckDB hands down conditions on folders.
"""
