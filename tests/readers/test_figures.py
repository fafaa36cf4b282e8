"""CPU and memory figures that people noted down."""

from datetime import UTC, datetime

import pytest
from loadstone.readers import Problems, resources

TEXT = """\
label,scope,name,cpu_millicores,memory_mib,cpu_percent,sampled_at
before,pod,cattle-system/rancher-0,,812,,2023-09-27T14:35:00-07:00
after,pod,cattle-system/rancher-0,250.5,1930,,
"1000 requests/s, no observer",node,playground,,,79,
"1000 requests/s, observer",node,playground,,,93,
"""


def parsed(text: str):
    """The figures in a text, and what was wrong with it."""
    problems = Problems()
    return resources.parse_notes(text, problems), problems.texts()


def test_every_figure_with_its_label() -> None:
    found, problems = parsed(TEXT)
    assert problems == []
    assert [tuple(vars(figure).values()) for figure in found.figures] == [
        ("before", "memory_mib", "pod cattle-system/rancher-0", 812, "MiB", "812"),
        ("after", "cpu_millicores", "pod cattle-system/rancher-0", 250.5, "millicores", "250.5"),
        ("after", "memory_mib", "pod cattle-system/rancher-0", 1930, "MiB", "1930"),
        ("1000 requests/s, no observer", "cpu_percent", "node playground", 0.79, "share", "79"),
        ("1000 requests/s, observer", "cpu_percent", "node playground", 0.93, "share", "93"),
    ]


def test_figures_of_a_moment_are_samples() -> None:
    found, _ = parsed(TEXT)
    assert list(map(vars, found.samples)) == [
        {
            "sampled_at": datetime(2023, 9, 27, 21, 35, tzinfo=UTC),
            "scope": "pod",
            "name": "cattle-system/rancher-0",
            "cpu_millicores": None,
            "memory_mib": 812.0,
            "asked_at": None,
            "label": "before",
        }
    ]


def test_a_percentage_of_a_node_is_no_sample() -> None:
    found, _ = parsed("label,scope,name,cpu_percent,sampled_at\nx,node,n,5,2026-11-21T11:00:00Z\n")
    assert (len(found.figures), found.samples) == (1, [])


def test_columns_may_be_missing_and_in_any_order(tmp_path) -> None:
    path, problems = tmp_path / "1.figures.csv", Problems()
    path.write_bytes(b"\xef\xbb\xbfname, memory_mib, label, scope\r\nrancher, 5, before, process\r\n\r\n")
    found = resources.FORMATS["figures.csv"].report(path, problems)
    assert problems.texts() == []
    assert [(figure.section, figure.statistic, figure.value) for figure in found.figures] == [
        ("before", "process rancher", 5)
    ]


@pytest.mark.parametrize(
    "row",
    [
        "after,pod,x,1,2,3",
        "after,cluster,x,1,,,",
        "after,pod,,1,,,",
        "after,pod,x,,,,",
        "after,pod,x,-1,,,",
        "after,pod,x,1 GB,,,",
        "after,pod,x,,,101,",
        "after,pod,x,NaN,,,",
        'after,pod,x,"1,5",,,',
        "after,pod,x,1,,,2023-09-27T14:35:00",
        "after,pod,x,1,,,yesterday",
        "after,pod,x,1,,,0001-01-01T00:00:00+23:00",
        'after,"p"od,x,1,,,',
        "after,pod,x,1\x00,,,",
        "9" * 200_000,
    ],
)
def test_a_corrupt_line_is_counted_and_the_others_are_read(row) -> None:
    lines = TEXT.splitlines()
    lines[2] = row
    found, problems = parsed("\n".join(lines))
    assert problems == ["holds 1 corrupt record (line 3)"]
    assert len(found.figures) == 3


@pytest.mark.parametrize(
    "text", ["hello\n", "label;scope;name\n", "label,scope\n", "label,scope,name,disk\n", "label,label,scope,name\n"]
)
def test_another_header_is_named_as_wrong(text) -> None:
    problem = "is damaged: its first line does not name the columns label, scope, name and figures"
    assert parsed(text) == (None, [problem])


def test_nothing_at_all() -> None:
    assert parsed("\n") == (None, ["is damaged: it has no first line that names its columns"])
