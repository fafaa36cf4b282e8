"""Loadstone: an archive of HTTP load-test results, its tables and its reports. Knows nothing of Snakemake."""

__version__ = "1.0.0"
