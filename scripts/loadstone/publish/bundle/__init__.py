"""One file of raw results, metadata, tables, site and provenance, which can be checked anywhere.

`contents` says what belongs to it, `bag` writes it, `check` judges one, `rebuild` makes its tables again.
"""
