"""What Snakemake needs: what is missing or stale, and what a command does before its first and after its last job.

In: the checked configuration and the archive. Out: names of files for rules; nothing here makes these files.
"""
