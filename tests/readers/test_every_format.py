"""Every format that is registered, against what may happen to any file: a new format is tested by being registered."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from loadstone.readers import FORMATS, MODULES, Problems
from loadstone.readers.base import Figure
from readers import test_ab_tsv, test_figures, test_hdr, test_hey_csv, test_resource_log, test_vegeta_text
from readers.damage import HOSTILE, cuts
from support import samples
from support.rawfiles import Attack, compress

NAMES = [name for name in FORMATS if not name.startswith("warmups.")]
BINARY = ("results.bin",)
SORTED = ("ab.tsv",)  # by latency: which request was sent first, lines behind it say
SAMPLES = {
    "vegeta.txt": test_vegeta_text.NEW.encode(),
    "hey.csv": test_hey_csv.TEXT.encode(),
    "ab.tsv": test_ab_tsv.TEXT.encode(),
    "hdr.csv": test_hdr.COUNTED.encode(),
    "summary.csv": b"min,avg,p95,count\n1.25ms,2.5ms,7.5ms,40\n",
    "resource-usage.log": test_resource_log.LOG.encode(),
    "resource-summary.txt": test_resource_log.ALIGNED.encode(),
    "figures.csv": test_figures.TEXT.encode(),
    "resources.csv": b"sampled_at,scope,name,cpu_millicores,memory_mib\n"
    + b"".join(b"2026-11-21T11:00:%02d.5Z,process,app,%d.25,12.5\n" % (second, second) for second in range(40)),
    "artillery.json": samples.content("one.artillery.json"),
    "k6.summary.json": samples.content("open.k6.summary.json"),
    "k6.txt": samples.content("open.k6.txt"),
    "k6.csv": samples.content("open.k6.csv"),
    "k6.json": samples.content("open.k6.json"),
}


@pytest.fixture
def sample(attack: Attack) -> Callable[[str], bytes]:
    """What a sound file of a format holds."""
    made = {"results.json": attack.json, "results.csv": attack.csv, "results.bin": attack.binary}
    made["summary.json"] = json.dumps(attack.report).encode()
    return lambda name: made.get(name) or SAMPLES[name]


def rows_of(path: Path, name: str, problems: Problems) -> Iterator[dict[str, Any]]:
    """Requests and samples."""
    known = FORMATS[name]
    for batch in known.requests(path, problems) if known.requests else ():
        batch.validate(full=True)
        yield from batch.to_pylist()
    yield from map(vars, known.samples(path, problems, UTC) if known.samples else ())


def read(folder: Path, name: str, content: bytes, suffix: str = "") -> tuple[list[dict], dict[str, Any], list[str]]:
    """Rows, what is reported, and every problem. Whatever the file holds, nothing may be raised."""
    path = folder / f"1.{name}{suffix}"
    path.write_bytes(content)
    problems, told = Problems(), Problems()
    rows = list(rows_of(path, name, problems))
    reading = FORMATS[name].reading("ms")
    report = reading(path, told) if reading else None
    texts = [*problems.texts(), *told.texts()]
    assert all(text.isprintable() for text in texts)
    reported = (
        {"figures": report.figures, "summary": report.summary, "samples": list(map(vars, report.samples))}
        if report
        else {}
    )
    return rows, reported, texts


def place(figure: Figure) -> tuple[str, str, str]:
    return figure.section, figure.metric, figure.statistic


def measured(row: dict[str, Any], name: str) -> tuple[Any, ...]:
    number = () if name in SORTED else ("seq",)
    return tuple(row.get(column) for column in (*number, "latency_ns", "name", "cpu_millicores", "memory_mib"))


@pytest.mark.parametrize("name", NAMES)
def test_the_sample_is_sound(tmp_path, sample, name):
    rows, reported, problems = read(tmp_path, name, sample(name))
    assert problems == [] and (rows or reported["figures"] or reported["summary"] or reported["samples"])
    assert read(tmp_path, name, compress(sample(name)), ".zst") == (rows, reported, [])


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_file(tmp_path, name):
    for content in (b"", compress(b"")):
        rows, reported, problems = read(tmp_path, name, content, ".zst" if content else "")
        assert rows == [] and not reported.get("summary") and not reported.get("figures")
        assert problems or FORMATS[name].requests, "a file of requests without any is told where all its rows are known"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_anywhere_gives_nothing_that_it_does_not_hold(tmp_path, sample, name):
    whole, reported, _ = read(tmp_path, name, sample(name))
    known = {place(each): each.value for each in reported.get("figures", ())}
    values = {measured(row, name) for row in whole}
    for cut in cuts(sample(name), 25)[1:]:
        rows, kept, _ = read(tmp_path, name, cut)
        # A last line without its end may lack digits: of that alone a figure may be another. What the rest of a report
        # of Artillery says of a row (its code, its phase) is then not known.
        assert len([row for row in rows if measured(row, name) not in values]) <= 1
        figures = [each for each in kept.get("figures", ()) if known.get(place(each)) != each.value]
        assert len(figures) <= 1, (len(cut), figures)


@pytest.mark.parametrize("name", NAMES)
def test_compressed_data_cut_anywhere_are_told(tmp_path, sample, name):
    for cut in cuts(compress(sample(name)), 8)[1:]:
        _, _, problems = read(tmp_path, name, cut, ".zst")
        assert problems


# vegeta itself tells its formats apart, and samples are taken by the names of their columns: what is read is true.
READABLE = {("results.bin", "results.json"), ("results.bin", "results.csv"), ("resources.csv", "figures.csv")}


@pytest.mark.parametrize("name", NAMES)
def test_another_format_under_its_name_is_no_result(tmp_path, sample, name):
    for other in NAMES:
        if name != other and (name, other) not in READABLE:
            rows, reported, problems = read(tmp_path, name, sample(other))
            assert problems, f"nobody is told that it is {other}"
            assert rows == [] and not reported.get("summary"), other


@pytest.mark.parametrize("name", NAMES)
def test_hostile_content_is_told(tmp_path, name):
    for what, content in HOSTILE.items():
        rows, reported, problems = read(tmp_path, name, content)
        own = {"vegeta's JSON": ("results.json", "results.bin"), "vegeta's report": ("vegeta.txt",)}.get(what, ())
        is_its_own = name in own
        assert is_its_own or (rows == [] and not reported.get("summary")), what
        assert problems or is_its_own or not content.strip(), what


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BINARY])
def test_windows_line_ends_change_nothing(tmp_path, sample, name):
    content = sample(name).replace(b"\r\n", b"\n")
    assert read(tmp_path, name, content.replace(b"\n", b"\r\n")) == read(tmp_path, name, content)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BINARY])
def test_a_decimal_comma_is_never_read_as_another_number(tmp_path, sample, name):
    """Every decimal point becomes a comma: figures are the same, absent, or told."""
    whole, reported, _ = read(tmp_path, name, sample(name))
    content = re.sub(rb"(?<=\d)\.(?=\d)", b",", sample(name))
    if content == sample(name):
        pytest.skip(f"no figure of {name} has decimals")
    rows, other, problems = read(tmp_path, name, content)
    known = {place(each): each.value for each in reported.get("figures", ())}
    wrong = [each for each in other.get("figures", ()) if known.get(place(each)) != each.value]
    assert (not wrong and all(row in whole for row in rows)) or problems
    columns = {column for column in ("latency_ns", "cpu_millicores", "memory_mib") if rows and column in rows[0]}
    values = {column: {row[column] for row in whole} for column in columns}
    assert all(row[column] in values[column] or row[column] is None for row in rows for column in columns)


def test_the_latency_of_each_tool_is_explained_once() -> None:
    explained = [each.generator for module in MODULES for each in getattr(module, "GENERATORS", ())]
    assert len(explained) == len(set(explained))
