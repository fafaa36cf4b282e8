"""What Snakemake asks: what is missing or stale, what a command does before its first job and after its last.

In: the checked configuration and the archive. Out: names of files for rules; nothing here knows how one is made.
"""
