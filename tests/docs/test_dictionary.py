"""The data dictionary is that of the schema: it explains every column, and its types are those that DuckDB shows."""

import re
from collections import Counter

import pytest
import yaml
from loadstone.percentiles import SHOWN_PERCENTILES
from loadstone.tables import schema

from docs import dictionary

DECLARED = yaml.safe_load((dictionary.PROJECT / "scripts/loadstone/tables/columns.yaml").read_text(encoding="utf-8"))
ENTRIES = {
    table: declared["columns"]
    for section in ("tables", "views", "internal")
    for table, declared in DECLARED[section].items()
}


def test_the_document_is_what_is_generated() -> None:
    assert dictionary.DOCUMENT.read_text(encoding="utf-8") == dictionary.document(), "run `make docs`"


@pytest.mark.parametrize("table", dictionary.TABLES)
def test_every_column_is_explained(table: str) -> None:
    types = dictionary.types(dictionary.TABLES[table])
    assert list(schema.COLUMNS[table]) == list(types)
    for name, (type_, meaning) in schema.COLUMNS[table].items():
        assert meaning, name
        assert type_ == types[name] or type_.removesuffix("[]") in DECLARED["structs"], name


@pytest.mark.parametrize("table", ENTRIES)
def test_every_column_is_declared_once(table: str) -> None:
    counts = Counter(name for names in ENTRIES[table] for name in names.split(", "))
    assert {name for name, count in counts.items() if count > 1} == set()


@pytest.mark.parametrize("table", ["cells", "comparisons", "run_figures", "time_bins"])
def test_every_percentile_of_pages_has_the_columns_of_p90(table: str) -> None:
    columns = schema.COLUMNS[table]
    p90 = [name for name in columns if re.fullmatch(r"(ok_)?p90(_\w+)?", name)]
    assert p90
    for name in SHOWN_PERCENTILES:
        assert {column.replace("p90", name) for column in p90} <= columns.keys()


def test_every_common_column_is_used() -> None:
    common = {name for names in DECLARED["common"] for name in names.split(", ")}
    assert common == {
        name
        for entries in ENTRIES.values()
        for names, text in entries.items()
        if not text
        for name in names.split(", ")
    }
