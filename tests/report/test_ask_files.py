"""What the page on which readers ask the tables is made of: the same bytes for the same tables, bounded, whole."""

import re

import duckdb
import pytest
from loadstone.errors import LoadstoneError
from loadstone.report import query_page
from loadstone.tables.schema import TABLES
from report.asking import examples
from report.conftest import SCRIPT

pytest_plugins = ["report.asked_site"]


def test_the_same_tables_give_the_same_bytes_and_no_file_is_written_twice(asked, packages, tmp_path):
    reports, tables, campaigns = asked
    query_page.build_query_page(campaigns, tables, tmp_path, packages, {"title": "Results of <us> & them"})
    made = {file.relative_to(tmp_path): file for file in tmp_path.rglob("*") if file.is_file()}
    assert len(made) > 20
    for name, file in made.items():
        assert file.read_bytes() == (reports / name).read_bytes(), name
    before = {name: file.stat() for name, file in made.items()}
    query_page.build_query_page(campaigns, tables, tmp_path, packages, {"title": "Results of <us> & them"})
    assert {name: file.stat() for name, file in made.items()} == before


def test_one_campaign_more_changes_its_tables_alone(asked, packages, tmp_path):
    _, tables, campaigns = asked
    query_page.build_query_page(campaigns[1:], tables, tmp_path, None, {})
    before = {file.name: file.read_bytes() for file in (tmp_path / "ask").iterdir()}
    query_page.build_query_page(campaigns, tables, tmp_path, None, {})
    after = {file.name: file.read_bytes() for file in (tmp_path / "ask").iterdir()}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"runs.js", "cells.js", "planned.js", "problems.js", "time_bins.js"}


def test_files_of_tables_that_are_no_longer_published_go_away(asked, tmp_path):
    _, tables, campaigns = asked
    folder = tmp_path / "ask"
    folder.mkdir()
    (folder / "former.js").write_text('loadstone.receive("former",0,"");\n')
    (folder / "mine.js").write_text("// somebody else's\n")
    with query_page.connect(tables, campaigns) as connection:
        query_page.write_tables(connection, tmp_path)
    assert not (folder / "former.js").exists() and (folder / "mine.js").exists()


def test_a_damaged_copy_of_duckdb_is_made_again(packages, tmp_path):
    parts = query_page.write_engine(packages, tmp_path)
    files = [tmp_path / file for part in parts.values() for file in part]
    whole = [file.read_bytes() for file in files]
    files[0].unlink()
    (tmp_path / "assets/duckdb/module-99.js").write_text("of an earlier version")
    assert query_page.write_engine(packages, tmp_path) == parts
    assert [file.read_bytes() for file in files] == whole
    assert not (tmp_path / "assets/duckdb/module-99.js").exists()


def test_licenses_lie_beside_what_is_shipped(asked):
    text = (asked[0] / "assets/duckdb/LICENSES.txt").read_text()
    for words in ("DuckDB Foundation", "Permission is hereby granted", "Apache License", "FlatBuffers", "tslib"):
        assert words in text


def test_an_incomplete_installation_is_named(tmp_path):
    with pytest.raises(LoadstoneError, match="make ask"):
        query_page.write_engine(tmp_path, tmp_path / "reports")


def test_only_the_newest_campaigns_are_handed_out_when_there_are_too_many_runs(asked, tmp_path, monkeypatch):
    _, tables, campaigns = asked
    assert query_page.newest_campaigns(tables, campaigns) == campaigns
    monkeypatch.setattr(query_page, "MOST_RUNS", 20)
    assert query_page.newest_campaigns(tables, campaigns) == campaigns[:1]
    monkeypatch.setattr(query_page, "MOST_RUNS", 1)  # one at least
    assert query_page.newest_campaigns(tables, campaigns) == campaigns[:1]
    text = query_page.build_query_page(campaigns, tables, tmp_path, None, {}).read_text()
    assert "the newest 1 campaign of 2" in text
    assert SCRIPT.replace("<", "\\u003c") not in text


def test_an_empty_archive_has_tables_without_rows(tmp_path):
    made = query_page.build_query_page([], tmp_path / "tables", tmp_path / "reports", None, {})
    text = made.read_text()
    assert "(0 rows)" in text and "Examples" not in text
    for name in ("percentile_curves", "run_figures", "resource_usage"):
        assert name not in query_page.PUBLISHED and f"<code>{name}</code>" in text, "told to be elsewhere"


def test_tables_of_single_requests_are_never_handed_out():
    assert not set(query_page.PUBLISHED) & {"requests", "resources", "spans", "histograms", "figures", "facts"}
    assert {"runs", "cells", "comparisons"} <= set(query_page.PUBLISHED)


def test_every_example_is_sql_that_says_what_it_asks():
    for query in examples():
        first, _, rest = query.partition("\n")
        assert first.startswith("-- ") and "--" not in first[3:] and rest


def test_every_example_asks_for_columns_that_there_are(connection):
    """Those that have no answer in this site too."""
    for query in examples():
        try:
            connection.execute(f"EXPLAIN {query}")
        except duckdb.CatalogException as error:
            missing = re.search(r"Table with name (\w+) does not exist", str(error))
            assert missing and missing[1] in set(query_page.PUBLISHED) - set(TABLES), query


def test_times_have_no_zone_in_a_browser(connection):
    described = dict(row[:2] for row in connection.execute("DESCRIBE runs").fetchall())
    assert described["started_at"] == "TIMESTAMP"
    assert {field.name for field in TABLES["cells"]} == {
        row[0] for row in connection.execute("DESCRIBE cells").fetchall()
    }
