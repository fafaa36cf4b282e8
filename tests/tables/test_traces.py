"""Trace dumps of an archive to `spans`, `trace_shares` and `problems`."""

from pathlib import Path
from typing import Any

import pytest
from loadstone import archive
from loadstone.archive import trace_dumps
from loadstone.archive.trace_dumps import Dump
from loadstone.tables import database
from loadstone.tables.traces import convert_dump, prune_dumps
from support.rawfiles import TIMESTAMP, compress, write_cell
from support.spans import dump, span, trace

US = 1_714_682_000_000_000
NAME = "traces-1714682252555.json.zst"


def presidio(trace_id: str, start_us: int = US) -> dict[str, Any]:
    """A response of 170 ms during which the filter called Presidio for 70, 15 and 50 ms."""
    calls = [(5_000, 70_000), (80_000, 15_000), (100_000, 50_000)]
    spans = [span("root", start_us, 170_000, service="prose", operation="ingress")]
    for number, (offset, length) in enumerate(calls):
        spans += [
            span(f"call{number}", start_us + offset - 1000, length + 2000, "root", service="prose", operation="call"),
            span(f"presidio{number}", start_us + offset, length, f"call{number}", service="presidio", operation="POST"),
        ]
    return trace(trace_id, spans)


class Traced:
    """An archive with one campaign, and its dumps' tables."""

    def __init__(self, folder: Path) -> None:
        self.archive, self.tables = folder / "archive", folder / "tables"
        self.cell = write_cell(self.archive, {})
        self.log: list[str] = []

    def save(self, content: bytes, below: str = "", name: str = NAME) -> Path:
        path = self.archive / below / "_trace_dumps" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compress(content) if name.endswith(".zst") else content)
        return path

    def dumps(self, **owned: tuple[str, str, str]) -> list[Dump]:
        return trace_dumps.find(
            self.archive, archive.campaigns(self.archive), {f"{k}.json.zst": v for k, v in owned.items()}
        )

    def convert(self) -> None:
        for each in self.dumps():
            convert_dump(each, self.tables, self.log.append)

    def rows(self, query: str) -> list[dict[str, Any]]:
        with database.connect(self.tables) as connection:
            found: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
        return found


@pytest.fixture
def traced(tmp_path) -> Traced:
    return Traced(tmp_path)


def test_presidio_took_135_of_170_ms(traced) -> None:
    traced.save(dump(presidio("t1")))
    traced.convert()
    (row,) = traced.rows("FROM trace_shares WHERE service = 'presidio' AND operation IS NULL")
    assert (row["n_spans"], row["busy_ns"], row["total_ns"]) == (3, 135_000_000, 135_000_000)
    assert row["root_duration_ns"] == 170_000_000
    assert row["share"] == pytest.approx(135 / 170)
    assert row["critical_share"] == pytest.approx(135 / 170)
    rows = traced.rows("FROM trace_shares WHERE service = 'prose' ORDER BY operation NULLS FIRST")
    assert [(r["operation"], r["n_spans"], r["busy_ns"], r["self_ns"] // 1000) for r in rows] == [
        (None, 4, 170_000_000, 35_000),
        ("call", 3, 141_000_000, 6_000),
        ("ingress", 1, 170_000_000, 29_000),
    ]
    # Every moment of the root is some span's own.
    (total,) = traced.rows("SELECT sum(critical_ns) AS ns FROM trace_shares WHERE operation IS NULL")
    assert total["ns"] == 170_000_000


def test_spans_as_the_contract_has_them(traced) -> None:
    traced.save(dump(presidio("t1")), f"demo/here/{TIMESTAMP}")
    traced.convert()
    (row,) = traced.rows("FROM spans WHERE span_id = 'presidio1'")
    started_at = row.pop("started_at")
    assert started_at.timestamp() == pytest.approx(US / 1e6 + 0.08)
    assert row == {
        "app": "demo",
        "host": "here",
        "timestamp": TIMESTAMP,
        "variant": None,
        "rate": None,
        "run": None,
        "trace_id": "t1",
        "span_id": "presidio1",
        "parent_id": "call1",
        "service": "presidio",
        "operation": "POST",
        "duration_ns": 15_000_000,
        "dump": f"demo/here/{TIMESTAMP}/_trace_dumps/{NAME}",
        "follows": False,
        "failed": False,
        "depth": 2,
        "self_ns": 15_000_000,
        "critical_ns": 15_000_000,
    }


def test_calls_at_the_same_time_are_no_more_than_the_time_they_took(traced) -> None:
    spans = [span("root", US, 100_000)]
    spans += [span(f"c{n}", US + 10_000 + n * 5_000, 50_000, "root", service="backend") for n in range(3)]
    spans.append(span("after", US + 90_000, 70_000, "root", service="late"))
    traced.save(dump(trace("t1", spans)))
    traced.convert()
    rows = traced.rows("FROM trace_shares WHERE operation IS NULL ORDER BY service")
    found = {row["service"]: (row["total_ns"] // 10**6, row["busy_ns"] // 10**6, row["share"]) for row in rows}
    assert found == {"backend": (150, 60, 0.6), "front": (100, 100, 1.0), "late": (70, 10, 0.1)}


@pytest.mark.parametrize(
    ("below", "key"),
    [
        ("", (None, None, None)),
        ("demo", ("demo", None, None)),
        ("demo/here", ("demo", "here", None)),
        (f"demo/here/{TIMESTAMP}", ("demo", "here", TIMESTAMP)),
    ],
)
def test_a_dump_belongs_to_what_it_lies_in(traced, below, key) -> None:
    traced.save(dump(presidio("t1")), below)
    traced.convert()
    for table in ("spans", "trace_shares"):
        found = traced.rows(f"SELECT DISTINCT app, host, timestamp FROM {table}")
        assert [tuple(row.values()) for row in found] == [key]


def test_the_catalogue_says_which_campaign_a_dump_above_it_belongs_to(traced) -> None:
    traced.save(dump(presidio("t1")), "demo")
    key = ("demo", "here", TIMESTAMP)
    entries = {key: {"trace_dumps": [{"file": NAME, "of": "main"}]}}
    assert trace_dumps.owners(entries) == {NAME: key}
    campaigns = list(archive.campaigns(traced.archive))
    (found,) = trace_dumps.find(traced.archive, campaigns, trace_dumps.owners(entries))
    assert (found.app, found.host, found.timestamp) == key
    # Not against where it lies.
    (found,) = trace_dumps.find(traced.archive, campaigns, {NAME: ("other", "here", TIMESTAMP)})
    assert (found.app, found.host, found.timestamp) == ("demo", "", "")


def test_only_files_named_as_dumps_are_dumps(traced) -> None:
    for name in ("notes.txt", "traces-x.json", "traces-1.json.gz", "traces-2.json"):
        traced.save(b"{}", "demo", name)
    (traced.archive / "demo/_trace_dumps/traces-3.json").mkdir()
    (traced.archive / "demo/_trace_dumps/traces-4.json").symlink_to("nowhere")
    assert [found.name for found in traced.dumps()] == ["traces-2.json"]
    assert traced.dumps()[0].saved_at.timestamp() == 0.002


def test_dumps_of_one_name_stay_apart(traced) -> None:
    traced.save(dump(presidio("t1")))
    traced.save(dump(presidio("t2"), presidio("t3")), "demo")
    keys = {(found.key, found.slug) for found in traced.dumps()}
    assert len({key for key, _ in keys}) == len({slug for _, slug in keys}) == 2
    traced.convert()
    assert len(traced.rows("SELECT DISTINCT dump, trace_id FROM spans")) == 3


def test_what_is_odd_is_named(traced) -> None:
    lost = trace("t2", [span("root", US, 100), span("lost", US, 10, "gone"), span("late", US + 95, 50, "root")])
    content = dump(presidio("t1"), lost, presidio("t1"), trace("t3", []))[:-200] + b"]}"
    traced.save(dump(presidio("t1"), lost, presidio("t1"), trace("t3", [])))
    traced.save(content[:600], name="traces-1.json")
    traced.convert()
    found = {(row["source"], row["problem"]) for row in traced.rows("FROM problems")}
    assert found == {
        (f"_trace_dumps/{NAME}", "holds 1 traces appear twice; the first of each is used"),
        (f"_trace_dumps/{NAME}", "holds 1 traces without a span"),
        (
            f"_trace_dumps/{NAME}",
            "holds 1 spans that no parent connects to their trace's root; no share includes them",
        ),
        (
            f"_trace_dumps/{NAME}",
            "holds 1 spans outside their parent's time (clocks that differ, or work not waited for)",
        ),
        ("_trace_dumps/traces-1.json", "is truncated: it ends in the middle of the Jaeger dump"),
    }
    assert len(traced.rows("FROM spans")) == 7 + 3


def test_a_dump_without_traces_has_its_tables_all_the_same(traced) -> None:
    traced.save(dump())
    traced.convert()
    assert traced.rows("FROM spans") == traced.rows("FROM trace_shares") == []


def test_a_root_that_took_no_time_has_no_share(traced) -> None:
    traced.save(dump(trace("t1", [span("root", US, 0)])))
    traced.convert()
    assert {row["share"] for row in traced.rows("FROM trace_shares")} == {None}


def test_rows_of_a_dump_that_is_gone_are_removed(traced) -> None:
    kept, gone = traced.save(dump(presidio("t1"))), traced.save(b"{", "demo")
    traced.convert()
    assert len(traced.rows("FROM problems")) == 1
    gone.unlink()
    prune_dumps(traced.tables, traced.dumps())
    assert kept.exists() and len(traced.rows("SELECT DISTINCT dump FROM spans")) == 1
    assert traced.rows("FROM problems") == []


def test_removing_other_campaigns_leaves_dumps_alone(traced) -> None:
    traced.save(dump(presidio("t1")))
    traced.convert()
    database.prune(traced.tables, [])
    assert len(traced.rows("FROM spans")) == 7


def test_nothing_is_written_to_the_archive(traced) -> None:
    traced.save(dump(presidio("t1")))
    before = {path: path.stat().st_mtime_ns for path in traced.archive.rglob("*")}
    traced.convert()
    assert {path: path.stat().st_mtime_ns for path in traced.archive.rglob("*")} == before


def test_names_that_mean_something_elsewhere(traced) -> None:
    hostile = "<b>'\"*?[{}%\\ü"
    traced.save(dump(trace("t1", [span("root", US, 10, service=hostile, operation=hostile)])), f"demo/{hostile[:9]}")
    (traced.archive / "demo" / hostile[:9] / TIMESTAMP).mkdir()
    traced.convert()
    (row,) = traced.rows("FROM spans")
    assert row["service"] == row["operation"] == hostile
    assert row["host"] == hostile[:9]
