"""The data dictionary is that of the schema, and explains every column once."""

import pytest

from docs import dictionary


def test_the_document_is_what_is_generated() -> None:
    assert dictionary.DOCUMENT.read_text(encoding="utf-8") == dictionary.document(), "run `make docs`"


@pytest.mark.parametrize("table", dictionary.TABLES)
def test_every_column_is_explained(table: str) -> None:
    found = dictionary.meanings()
    columns = dictionary.TABLES[table].names
    assert [column for column in columns if not dictionary.explained(table, column, found)] == []


def test_every_explanation_is_of_a_column() -> None:
    found = dictionary.meanings()
    assert set(found["tables"]) == set(dictionary.TABLES)
    used: dict[str, set[str]] = {"common": set()}
    for table, columns in dictionary.TABLES.items():
        own = found["tables"][table]["columns"]
        names = [(name, dictionary.pattern(name, own)) for name in columns.names]
        used[table] = {entry for _, entry in names if entry}
        assert used[table] == set(own), table
        used["common"] |= {dictionary.pattern(name, found["common"]) or "" for name, entry in names if not entry}
    assert used["common"] == set(found["common"])
