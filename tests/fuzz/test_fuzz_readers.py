"""Every reader against bytes that nobody chose: no crash, and no row or figure that can't be."""

import json
import math
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest
from fuzz.fuzzing import fuzz
from loadstone.archive import metadata, run_records
from loadstone.readers import FORMATS, Problems, jaeger, markdown
from loadstone.readers.base import Report
from readers import (
    test_ab_tsv,
    test_figures,
    test_hdr,
    test_hey_csv,
    test_markdown,
    test_resource_log,
    test_vegeta_text,
)
from support import samples
from support.rawfiles import Attack
from support.spans import dump, span, trace

DOCUMENT = f"# A\n\n- b\n\n{test_markdown.fenced(test_vegeta_text.NEW)}\nB\n=\n    {test_resource_log.ALIGNED}\n~~~\n"
RECORD = {"started": "2026-11-21T11:00:00Z", "machine": {"cpus": 2, "load_1min": 0.5}, "cluster": {"pods": []}}
METADATA = {"version": "4", "options": {"rate": "100", "duration": "60s"}, "runs": 3, "workloadInfo": {"app": "demo"}}

# What files of each format hold.
SAMPLES: dict[str, list[bytes]] = {
    "vegeta.txt": [test_vegeta_text.OLD.encode(), test_vegeta_text.NEW.encode()],
    "resource-usage.log": [test_resource_log.LOG.encode()],
    "resource-summary.txt": [test_resource_log.ALIGNED.encode(), test_resource_log.COMMAS.encode()],
    "resources.csv": [
        b"sampled_at,scope,name,cpu_millicores,memory_mib\n2026-11-21T11:00:00.5Z,process,app,10.25,12.5\n"
    ],
    "figures.csv": [test_figures.TEXT.encode()],
    "hey.csv": [test_hey_csv.TEXT.encode()],
    "ab.tsv": [test_ab_tsv.TEXT.encode()],
    "hdr.csv": [text.encode() for text in (test_hdr.COMPUTED, test_hdr.COUNTED, test_hdr.COMMAS)],
    "summary.csv": [b"min,avg,p95,count\n1.25ms,2.5ms,7.5ms,40\n"],
    "artillery.json": [samples.content("one.artillery.json"), samples.content("two.artillery.json")],
    "k6.json": [samples.content("open.k6.json"), samples.content("closed.k6.json")],
    "k6.csv": [samples.content("open.k6.csv"), samples.content("micro.k6.csv")],
    "k6.summary.json": [samples.content(f"{run}.k6.summary.json") for run in ("open", "legacy", "full")],
    "k6.txt": [samples.content(f"{run}.k6.txt") for run in ("open", "closed", "full", "legacy")],
}
VEGETA = ("results.json", "results.csv", "results.bin", "summary.json")


def check_batch(batch: pa.RecordBatch) -> None:
    batch.validate(full=True)
    assert batch.num_rows > 0
    assert batch.column("latency_ns").to_numpy().min() >= 0
    if "sent_at" in batch.schema.names:
        sent_at = batch.column("sent_at").cast(pa.int64()).drop_null().to_numpy()
        assert not len(sent_at) or sent_at.min() >= 0
    assert all(code is None or code >= 0 for code in batch.column("code").to_pylist())


def check_report(found: Report | None) -> None:
    for figure in found.figures if found else []:
        assert math.isfinite(figure.value)
        (figure.section + figure.metric + figure.statistic + figure.text).encode()
    for value in found.facts.values() if found else []:
        value.encode()


def reading(name: str, path: Path) -> Callable[[bytes], None]:
    """Reads all that a file of the format holds."""
    known = FORMATS[name]

    def read(content: bytes) -> None:
        path.write_bytes(content)
        problems = Problems()
        for batch in known.requests(path, problems) if known.requests else ():
            check_batch(batch)
        for unit in (None, "ms"):
            reader = known.reading(unit)
            check_report(reader(path, problems) if reader else None)
        for _ in known.samples(path, problems, UTC) if known.samples else ():
            pass
        assert all(text.isprintable() for text in problems.texts())

    return read


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.startswith("warmups.")])
def test_no_bytes_crash_a_reader(tmp_path: Path, attack: Attack, name: str) -> None:
    contents = (attack.json, attack.csv, attack.binary, json.dumps(attack.report).encode())
    seeds = SAMPLES.get(name) or [dict(zip(VEGETA, contents, strict=True))[name][:20_000]]
    # Vegeta itself is started for each of its binary files.
    fuzz(name, seeds, reading(name, tmp_path / f"1.{name}"), examples=20 if name == "results.bin" else 100)


def test_every_format_has_samples() -> None:
    assert {*SAMPLES, *VEGETA} == {name for name in FORMATS if not name.startswith("warmups.")}


def test_no_bytes_crash_the_reader_of_documents(tmp_path: Path) -> None:
    path = tmp_path / "1.md"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        problems = Problems()
        list(markdown.blocks(path, problems))
        assert all(text.isprintable() for text in problems.texts())

    fuzz("md", [DOCUMENT.encode()], read)


def test_no_bytes_crash_the_reader_of_traces(tmp_path: Path) -> None:
    path = tmp_path / "traces-1.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        problems = jaeger.DumpProblems()
        for found in jaeger.read(path, problems):
            assert all(each.duration_us >= 0 for each in found.spans)
        assert all(text.isprintable() for text in problems.texts())

    fuzz("traces.json", [dump(trace("t1", [span("a", 1, 2), span("b", 1, 1)]))], read)


def test_no_bytes_crash_the_reader_of_metadata(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        found = metadata.read(path)
        assert found.duration_s is None or found.duration_s >= 0
        assert all(text.isprintable() for text in found.problems)

    fuzz("metadata.json", [json.dumps(METADATA).encode()], read)


def test_no_bytes_crash_the_reader_of_runs_records(tmp_path: Path) -> None:
    path = tmp_path / "1.run.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        run_records.read_run_record(path)

    fuzz("run.json", [json.dumps(RECORD).encode()], read)
