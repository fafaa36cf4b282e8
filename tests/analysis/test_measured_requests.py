"""Every query over requests reads ``sql/measured_requests.sql``: one place for phase, timeout and exclusion."""

import re
from importlib.resources import files

import pytest
from loadstone import sql

RELATION = "measured_requests"
QUERIES = sorted(path.name.removesuffix(".sql") for path in files(sql).iterdir() if path.name.endswith(".sql"))
# What only the relation may say. `requests` is the table with what tools wrote.
ITS_OWN = (r"phase\s*=\s*'test'", r"=\s*'timeout'", r"timeout_s\b.*1e9", r"\bFROM requests\b", r"\bJOIN requests\b")
# Queries that ask for more than measured requests of valid runs; `counted_requests` and `run_requests`
# if their caller does.
WIDER = {
    "with_excluded": {"counted_requests", "error_causes", "run_requests", "page_reported_raw"},
    "every_phase": {"run_requests", "page_reported_raw"},
}
# Queries of Parquet files that are no requests, or give a table as it is.
OTHER_FILES = {"view", "view_plain", "trace_shares"}


def statements(name: str) -> str:
    """A query without its comments."""
    return re.sub(r"--.*", "", sql.load(name))


@pytest.mark.parametrize("name", [name for name in QUERIES if name != RELATION])
def test_no_other_query_says_what_a_measured_request_is(name) -> None:
    text = statements(name)
    found = [pattern for pattern in ITS_OWN if re.search(pattern, text)]
    assert not found, f"{name}.sql: read `{RELATION}($files)` instead"
    assert "read_parquet" not in text or name in OTHER_FILES, f"{name}.sql reads files of requests by itself"


@pytest.mark.parametrize("name", [name for name in QUERIES if name != RELATION])
def test_no_query_of_requests_leaves_out_phases_or_runs_by_itself(name) -> None:
    text = statements(name)
    if RELATION not in text:
        return
    assert not re.search(r"(?<!FILTER \()\b(WHERE|AND|OR|NOT)\s+\(?(NOT\s+)?(\w+\.)?(excluded|measured)\b", text)
    assert {wider for wider in WIDER if f"{wider} :=" in text} == {
        wider for wider, queries in WIDER.items() if name in queries
    }


def test_percentiles_of_latencies_have_one_definition() -> None:
    """They are interpolated between order statistics, whatever the resolution of the tool."""
    others = r"quantile_disc|approx_quantile|(median|mode)\(latency"
    assert [name for name in QUERIES if re.search(others, statements(name))] == []


def test_the_relation_says_all_of_it() -> None:
    text = statements(RELATION)
    assert re.search(ITS_OWN[0], text) and re.search(ITS_OWN[1], text) and "read_parquet(files" in text
    assert "NOT selected_runs.excluded" in text
