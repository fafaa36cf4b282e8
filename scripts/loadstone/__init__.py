"""Loadstone: an archive of HTTP load-test results, its tables and its reports. Knows nothing of Snakemake."""

__version__ = "0.1.0"
