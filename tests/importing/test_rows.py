"""Rows of printed tables as runs."""

import json

import pytest

CSV = (
    "printed in May\ntag,cluster,avg,min,p(95),max\n"
    "base,local,2.5,1,7.5,9\nbase,far,3.5,2,8.5,10\nvai,local,1.5,1,6.5,8\n"
)
TABLE = "# Results\n\n| Scenario | Min | Max |\n| --- | --- | --- |\n| 1 | 1 | 90 |\n| 2 | 7 | 391 |\n"


def rows(entry, **more):
    return entry(format="summary.csv", variant="{tag}-{cluster}", generator="k6", load_model="closed", unit="ms") | more


def test_every_row_is_a_run_with_its_line_of_names(imports, entry):
    imports.write("old/a.txt", CSV)
    imports.declare(rows(entry, labels={"where": "{cluster}"}))
    imports.run()
    names, *printed = CSV.splitlines(keepends=True)[1:]
    found = imports.contents()
    runs = sorted(name for name in found if name.endswith("1.summary.csv"))
    assert [name.split("/")[-2] for name in runs] == ["base-far", "base-local", "vai-local"]
    assert sorted(found[name].decode() for name in runs) == sorted(names + row for row in printed)
    kept = [name for name in found if "/_imported/" in name]
    assert len(kept) == 1 and found[kept[0]] == CSV.encode()
    described = json.loads(next(found[name] for name in found if name.endswith("base-far/metadata.json")))
    assert (described["unit"], described["labels"], described["users"]) == ("ms", {"where": "far"}, 100)
    before = imports.contents()
    imports.run()
    assert imports.contents() == before and "0 files imported" in imports.log[-1]


def test_a_row_is_chosen_by_its_columns(imports, entry):
    imports.write("old/a.txt", CSV)
    imports.declare(rows(entry, match="tag=base, cluster=(?P<cluster>f)", variant="{tag}-{cluster}"))
    imports.run()
    assert [name for name in imports.contents() if "base-f/1.summary.csv" in name]
    assert not [name for name in imports.contents() if "vai" in name]


def test_a_row_of_a_markdown_table(imports, entry):
    imports.write("old/a.md", TABLE)
    imports.declare(
        entry(
            files="old/a.md",
            format="summary.csv",
            match="Results.*Scenario=2",
            variant="s{Scenario}",
            generator="artillery",
            unit="ms",
        )
    )
    imports.run()
    (run,) = [content for name, content in imports.contents().items() if name.endswith("summary.csv")]
    assert run.decode() == TABLE[TABLE.index("| Scen") :].replace("| 1 | 1 | 90 |\n", "")


def test_two_rows_for_one_place_are_refused(imports, entry):
    imports.write("old/a.txt", CSV)
    imports.declare(rows(entry, variant="{tag}"))
    assert any("old/a.txt, line 3 too" in line for line in imports.refused())


def test_a_unit_that_is_none_is_refused(imports, entry):
    imports.write("old/a.txt", CSV)
    imports.declare(rows(entry, unit="{tag}", variant="{cluster}-{tag}"))
    assert any("the unit 'base' is not valid" in line for line in imports.refused())


@pytest.mark.parametrize("cell", ["../../evil", "/etc", ".hidden", "a/b"])
def test_hostile_columns_lead_nowhere(imports, entry, cell):
    imports.write("old/a.txt", CSV.replace("far", cell))
    imports.declare(rows(entry, host="{cluster}"))
    assert imports.refused()
