"""Raw files of load generators and samplers -> record batches of requests, reports and samples.

In: a path, compressed by zstd when it is named ``.zst``, and a `Problems` to fill in. Out: see `Format`. A reader
raises LoadstoneError only for what the user has to fix on the machine (a missing program), never for the content of a
file.

To read the files of another tool:

1. Write a module here. For single requests, as `ab_tsv` does for ``ab -g``: a function that yields batches of
   `base.SCHEMA` (`base.batches`, `stream.csv_records`, `stream.matched_lines` and `stream.text_lines` do the common
   part), and at the end ``FORMATS = {"ab.tsv": Format("ab", requests=read, ...)}``. For a tool's own figures: a
   function that returns a `base.Report`, as `k6_summary` does for JSON (`stream.read_object`) and `vegeta_report` for
   printed text (``Format(report=stream.text_reader(parse), ...)``), or `hdr` where the file does not name its unit. A
   figure that the tool does not have, or defines differently from table `reports` in `docs/tables.md`, is omitted. What
   else differs between formats is a field of `Format` too.
   Latency over time, and whether a clock was set back, depend on the order of numbers: `ab_tsv` says what to do with a
   file in another order than that of sending.
   The module's ``GENERATORS`` says what the latency of the tool means, unless another module of the tool does.
2. Add the module to `MODULES` below. Its place is its rank: when a run has the same results twice, the first is used.
3. Add the name to `FOREIGN` in `loadstone.archive`: ``results`` makes a run collected, ``summary`` does not.
4. Add it to `docs/importing.md`: a row of the formats, an example, a sentence on what the tool measures; a tool that is
   new also to the lists of tools in `README.md` and `docs/README.md`.

`VERSION` of the tables stays as it is: tables of campaigns with such files are rebuilt by themselves. Tests damage a
sample of every format: put a real file into `tests/readers/samples` or, if it is short, its text into
`tests/support/foreign.py`, and name it in `tests/readers/test_every_format.py` and `tests/fuzz/test_fuzz_readers.py`.
"""

from loadstone.readers import (
    ab_tsv,
    artillery,
    hdr,
    hey_csv,
    k6_raw,
    k6_summary,
    k6_text,
    resources,
    summary_table,
    vegeta_raw,
    vegeta_report,
)
from loadstone.readers.base import ANSWERED_SCHEMA, SCHEMA, Format, Problems, Reader, Report, ReportReader

MODULES = (
    vegeta_raw,
    k6_raw,
    artillery,
    hey_csv,
    ab_tsv,
    vegeta_report,
    k6_summary,
    k6_text,
    hdr,
    summary_table,
    resources,
)
# By the name after the run's number (`archive.RawFile.format`).
FORMATS: dict[str, Format] = {name: known for module in MODULES for name, known in module.FORMATS.items()}
FORMATS |= {name.replace("results", "warmups"): FORMATS[name] for name in FORMATS if name.startswith("results.")}
RANKS = {name: rank for rank, name in enumerate(FORMATS)}

__all__ = ["ANSWERED_SCHEMA", "FORMATS", "RANKS", "SCHEMA", "Format", "Problems", "Reader", "Report", "ReportReader"]
