"""Comparisons through the workflow: made when declared, alone; gone when no longer declared."""

import json

import duckdb
import pytest

ENTRY = """
- id: demo
  title: Direct and through Envoy
  app: demo
  host: {host}
  timestamps: ["{timestamp}", "2020-01-01T00:00:00+00:00"]
"""


def rows(checkout, monkeypatch) -> list[tuple]:
    monkeypatch.chdir(checkout.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        query = "SELECT comparison, variant, n_runs, evidence FROM comparisons ORDER BY ALL"
        return database.sql(query).fetchall()


@pytest.fixture(scope="module")
def declared(collected):
    """The collected sweep, compared."""
    # Its files are copies, which are looked at once.
    collected.run("--cores", "all", "report")
    file = collected.path / "config/comparisons.yaml"
    host, timestamp = collected.campaign.parts[-2:]
    file.write_text(file.read_text() + ENTRY.format(host=json.dumps(host), timestamp=timestamp))
    before = collected.contents()
    planned = collected.jobs("--cores", "all", "report")
    assert planned == dict.fromkeys(("compare", "comparison_page", "database", "index", "report"), 1)
    collected.run("--cores", "all", "report")
    assert collected.contents() == before
    assert set(collected.jobs("--cores", "all", "report")) <= {"report"}
    return collected


def test_a_new_comparison_makes_its_own_table_and_page_alone(declared, monkeypatch) -> None:
    assert rows(declared, monkeypatch) == [("demo", "envoy", 2, "raw"), ("demo", "plain", 2, "raw")]
    page = (declared.path / "reports/comparisons/demo.html").read_text()
    assert "Direct and through Envoy" in page and "1 of 2 named" in page
    assert 'href="comparisons/demo.html"' in (declared.path / "reports/index.html").read_text()


def test_one_that_is_no_longer_declared_is_gone(declared, tmp_path, monkeypatch) -> None:
    checkout = declared.copy(tmp_path / "checkout")
    file = checkout.path / "config/comparisons.yaml"
    file.write_text(file.read_text().partition("\n- id: demo\n")[0])
    checkout.run("--cores", "all", "report")
    assert rows(checkout, monkeypatch) == []
    assert not (checkout.path / "reports/comparisons/demo.html").exists()


def test_a_wrong_declaration_is_named(declared, tmp_path) -> None:
    checkout = declared.copy(tmp_path / "checkout")
    (checkout.path / "config/comparisons.yaml").write_text("- {id: a/b, title: x, app: demo, host: h, timestamps: []}")
    output = checkout.run("--cores", "1", "-n", "report", expect=1)
    assert "config/comparisons.yaml is not valid" in output and "0.id" in output and "0.timestamps" in output
    assert "Traceback" not in output


def test_pages_that_were_deleted_are_made_again(declared, tmp_path) -> None:
    checkout = declared.copy(tmp_path / "checkout")
    checkout.run("--cores", "all", "report")
    (campaign,) = (checkout.path / "reports/campaigns").glob("*.html")
    comparison = checkout.path / "reports/comparisons/demo.html"
    for page in (campaign, comparison):
        page.unlink()
        checkout.run("--cores", "all", "report")
        assert page.exists()
    assert set(checkout.jobs("--cores", "all", "report")) <= {"report"}
