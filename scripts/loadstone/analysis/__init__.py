"""Tables of runs and requests -> statistics and conclusions.

In: Parquet tables of campaigns. Out: ``cells``, ``effects``, ``layers``, ``knees``, ``history``, ``claims``,
``comparisons`` and the gate's verdict. Reads no raw file.
"""
