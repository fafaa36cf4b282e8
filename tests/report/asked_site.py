"""Fixtures: a site whose tables can be asked, and the same tables in DuckDB's Python package."""

import os
from pathlib import Path

import pytest
from loadstone.archive import Campaign
from loadstone.report import query_page
from loadstone.tables import layout
from report.conftest import ENDING, SCRIPT
from report.synthetic import Made, write
from support.site import write_assets

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def packages() -> Path:
    installed = PROJECT / ".tools/duckdb-wasm"
    if not installed.is_dir():
        if os.environ.get("LOADSTONE_REQUIRE_GENERATORS") == "1":
            pytest.fail("DuckDB for browsers is not installed: make ask")
        pytest.skip("DuckDB for browsers is not installed: make ask installs it")
    return installed


def failure(campaign: Campaign) -> dict:
    return layout.campaign_key(campaign) | {
        "variant": '=cmd()"\r\n,x',
        "rate": 0.1 + 0.2,
        "run": 2**31 - 1,
        "nth": 1,
        "failed_at": "2026-11-21T11:30:00.123456+00:00",
        "error": f"a\n\tb {ENDING}",
        "evidence": ["", "a, b", SCRIPT, None],
        "collected": False,
    }


@pytest.fixture(scope="session")
def asked(tmp_path_factory, packages):
    """A site over two campaigns, one of them with hostile names: (reports, tables, campaigns)."""
    root = tmp_path_factory.mktemp("asked")
    tables, reports = root / "tables", root / "reports"
    good = Campaign(root / "archive", "demo", "myhost", "2026-11-21T11:30:00+00:00")
    hostile = Campaign(root / "archive", "shop", "big.host", "2026-11-20T09:00:00-04:00")
    write(tables, good, Made(["plain", "envoy"], [100.0, 300.0], runs=3, requests=1200))
    write(tables, hostile, Made(["plain", SCRIPT, ENDING], [10.0, 50.0], 3, 300, failing=SCRIPT, excluded=("plain", 2)))
    layout.write_rows(
        tables, layout.partition(tables, "failures", hostile) / layout.PART, [failure(hostile)], "failures"
    )
    campaigns = [good, hostile]
    write_assets(reports)
    query_page.build_query_page(campaigns, tables, reports, packages, {"title": "Results of <us> & them"})
    return reports, tables, campaigns


@pytest.fixture(scope="session")
def connection(asked):
    """The published tables in DuckDB's Python package."""
    _, tables, campaigns = asked
    with query_page.connect(tables, campaigns) as opened:
        yield opened
