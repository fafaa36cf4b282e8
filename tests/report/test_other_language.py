"""Pages decide by codes and values: the same texts in another language change no decision."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from loadstone import archive
from loadstone.config.variants import Variants
from loadstone.report import campaign_page, chart_rows, run_findings, start_page
from loadstone.report.queries import querying
from loadstone.report.variant_page import VariantHistory
from loadstone.tables import exclusion
from report.synthetic import Made, write
from support import rawfiles, site
from support.rawfiles import lines, write_cell
from tables.tabling import Project

OPEN, CLOSED = "charge ouverte par vegeta", "charge fermée par k6"


def history_row(way: str, load_model: str) -> dict[str, Any]:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    return {"host": "here", "timestamp": at.isoformat(), "started_at": at, "way": way, "load_model": load_model}


@pytest.mark.parametrize(
    ("rows", "unit"),
    [
        ([history_row(OPEN, "open")], "requests/s"),
        ([history_row(CLOSED, "closed")], "users"),
        ([history_row(OPEN, "open"), history_row(CLOSED, "closed")], "requests/s or users"),
    ],
)
def test_the_unit_of_a_variants_loads(rows: list[dict[str, Any]], unit: str) -> None:
    assert VariantHistory("demo", "plain", rows, {}).load_unit == unit


def test_the_levels_of_a_change_have_their_unit_once() -> None:
    common = {"variant": 0, "at": 0, "when": "hier", "note": "", "change": False}
    points = [common | {"level": 1}, common | {"level": 2, "change": True}]
    found = chart_rows.history(points, lambda row: f"{row['level']} 000", "milli secondes")
    assert "hier: from 1 000 to 2 000 milli secondes" in repr(found["changes"])


@pytest.mark.parametrize(("processes", "share"), [((0, 0), True), ((0, 1), False), ((None, None), False)])
def test_generators_that_share_a_process(processes: tuple[int | None, int | None], share: bool) -> None:
    rows = [
        {"generator": number, "process": process, "place": f"processus {process}", "clock_offset_ns": None}
        for number, process in enumerate(processes)
    ]
    found = run_findings.generators_context(SimpleNamespace(rows=lambda _: rows))  # type: ignore[arg-type]
    assert found["senders_share"] is share


@pytest.mark.parametrize(("second", "named"), [(b"", True), (rawfiles.compress(lines([1] * 9)), False)])
def test_excluded_runs_are_named_with_one_reason_if_it_is_the_same(
    tmp_path, monkeypatch: pytest.MonkeyPatch, second: bytes, named: bool
) -> None:
    monkeypatch.setattr(exclusion.Exclusion, "text", "parce que")
    project = Project(tmp_path)
    write_cell(project.archive, {"1.results.json.zst": rawfiles.compress(lines([1] * 100))})
    for variant, content in (("empty", b""), ("other", second)):
        write_cell(project.archive, {"1.results.json.zst": content}, variant=variant)
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    variants = Variants({})
    with querying(project.tables, [campaign]) as queries:
        (entry,) = start_page.campaign_entries(queries, [campaign], variants, {}, {})
        page = campaign_page.gather(queries, campaign, variants, 0.95, entry)
    assert len(page.excluded) == 2
    assert ("parce que" in campaign_page.runs_used(page)) is named


def test_a_single_run_has_no_spread_between_runs(tmp_path, watched) -> None:
    campaign = archive.Campaign(tmp_path / "archive", "demo", "here", rawfiles.TIMESTAMP)
    write(tmp_path / "tables", campaign, Made(["plain"], [100.0, 200.0], runs=1, requests=200))
    site.write_assets(tmp_path / "reports")
    site.build_campaign(campaign, tmp_path / "tables", tmp_path / "reports", Variants({}), {})
    (page,) = (tmp_path / "reports/campaigns").glob("*.html")
    english = page.read_text("utf-8")
    page.write_text(english.replace("one standard deviation of run means", "un ecart type"), "utf-8")
    assert page.read_text("utf-8") != english
    watched.open(f"{page.as_uri()}#stat=mean")
    watched.page.locator("#latency .data > summary").click()
    texts = watched.page.locator("#latency tbody td").all_text_contents()
    assert texts.count("one run only") == 2 and not any("ecart" in text for text in texts), texts
