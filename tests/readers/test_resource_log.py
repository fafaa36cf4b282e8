"""Samples of ``kubectl top`` in a log, and the table printed of them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from loadstone.readers import Problems, markdown, resources
from loadstone.readers.base import Sample

LOG = """\
Timestamp, Namespace, Total CPU(mCPU), Total Memory(MiB)
2025-03-10 20:44:24,nginx,50,451
2025-03-10 20:44:24,istio-system,5,107
2025-03-10 20:44:30,nginx,10,91
2025-03-10 20:44:30,istio-system,5,88
"""
ALIGNED = """\
Namespace      CPU_min   CPU_max   CPU_avg   Mem_min   Mem_max   Mem_avg
nginx          10m       50m       30.00m    91Mi      451Mi     271.00Mi
istio-system   5m        5m        5.00m     88Mi      107Mi     97.50Mi
TOTAL          15m       55m       35.00m    179Mi     558Mi     368.50Mi
"""
COMMAS = "\n".join(", ".join(line.split()) for line in ALIGNED.splitlines()) + "\n"
RUNS = ["20_1", "50_1", "20_10", "50_10", "20_50", "50_50", "20_90", "50_90"]
UNITS = {"CPU": "m", "Mem": "Mi"}
COLUMNS = [f"{metric}_{statistic}" for metric in UNITS for statistic in ("min", "max", "avg")]


def printed_table(samples: Iterable[Sample]) -> dict[str, tuple[str, ...]]:
    """The table of samples as the script prints it: namespace or ``TOTAL`` -> the texts of its six columns.

    The script is awk's: sums in double precision, rounded as C does. Namespaces are in the order of their first sample
    (the script's own order is by chance). Empty without samples.
    """
    kept: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        kept.setdefault(sample.name, []).append((sample.cpu_millicores or 0.0, sample.memory_mib or 0.0))
    rows = {}
    for name, pairs in kept.items():
        cpus, memories = zip(*pairs, strict=True)
        rows[name] = [f for values in (cpus, memories) for f in (min(values), max(values), sum(values) / len(values))]
    if rows:
        rows["TOTAL"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return {name: tuple(map(cell_text, COLUMNS, row)) for name, row in rows.items()}


def cell_text(column: str, value: float) -> str:
    metric, statistic = column.split("_")
    return f"{value:.2f}{UNITS[metric]}" if statistic == "avg" else f"{int(value)}{UNITS[metric]}"


def sampled(path: Path, content: str | bytes, zone: timezone | None = UTC):
    """The samples of a log, and what was wrong with it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    problems = Problems()
    return list(resources.read_log(path, problems, zone)), problems.texts()


def parsed(text: str):
    """The printed table in a text, and what was wrong with it."""
    problems = Problems()
    return resources.parse_table(text, problems), problems.texts()


def cells(report) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for figure in report.figures:
        found[figure.section] = (*found.get(figure.section, ()), figure.text)
    return found


def test_samples_are_of_namespaces_in_utc(tmp_path) -> None:
    found, problems = sampled(tmp_path / "1.resource-usage.log", LOG, timezone(timedelta(hours=-7)))
    assert problems == []
    assert len(found) == 4
    assert vars(found[0]) == {
        "sampled_at": datetime(2025, 3, 11, 3, 44, 24, tzinfo=UTC),
        "scope": "namespace",
        "name": "nginx",
        "cpu_millicores": 50.0,
        "memory_mib": 451.0,
        "asked_at": None,
        "label": None,
    }


def test_six_fields_have_the_largest_pod_between_whatever_the_header_says(tmp_path) -> None:
    text = LOG.replace("20:44:24,nginx,50,451", "20:44:24,nginx,50,9m,451,46Mi")
    found, problems = sampled(tmp_path / "log", text)
    assert problems == []
    assert [(sample.cpu_millicores, sample.memory_mib) for sample in found[:2]] == [(50, 451), (5, 107)]


def test_times_without_zone_are_never_guessed(tmp_path) -> None:
    assert sampled(tmp_path / "log", LOG, None) == (
        [],
        ["is damaged: its times have no zone, and none was given for them"],
    )
    found, problems = sampled(
        tmp_path / "log", LOG.replace(",nginx", "+02:00,nginx").replace(",istio", "Z,istio"), None
    )
    assert problems == []
    assert [sample.sampled_at.hour for sample in found] == [18, 20, 18, 20]


@pytest.mark.parametrize("run", RUNS)
def test_the_published_tables_come_out_to_the_last_digit(shared: Path, run: str) -> None:
    folder = shared / "uds/sidecar-k3d" / run
    problems = Problems()
    computed = printed_table(resources.read_log(folder / "resource-usage.log", problems, UTC))
    told = resources.FORMATS["resource-summary.txt"].report(folder / "namespace-metrics-summary.txt", problems)
    assert problems.texts() == []
    assert computed == cells(told)
    assert len(computed) == 4


def test_the_log_that_was_cut_short(shared: Path) -> None:
    folder = shared / "uds/ambient-k3d/20_10"
    problems = Problems()
    samples = list(resources.read_log(folder / "resource-usage.log", problems, UTC))
    told = resources.FORMATS["resource-summary.txt"].report(folder / "namespace-metrics-summary.txt", problems)
    assert problems.texts() == []
    assert len(samples) == 6
    assert printed_table(samples) == cells(told)


def test_every_table_of_the_published_document(shared: Path) -> None:
    problems = Problems()
    document = shared / "seeds/003_41b205fb1b9435ff.txt"
    tables = [block for block in markdown.blocks(document, problems) if block.kind == "resource-summary.txt"]
    assert len(tables) == 8
    for block, run in zip(tables, RUNS, strict=True):
        told, found_problems = parsed(block.text.decode())
        assert found_problems == []
        expected = {line.split()[0]: tuple(line.split()[1:]) for line in block.text.decode().splitlines()[1:]}
        assert cells(told) == expected
        raw = resources.read_log(shared / "uds/sidecar-k3d" / run / "resource-usage.log", problems, UTC)
        assert printed_table(raw) == expected
    assert problems.texts() == []


@pytest.mark.parametrize(
    "text", [ALIGNED, COMMAS, ALIGNED.replace("\n", " \n"), f"Analyzing ...\n\n{COMMAS}\ndone, all\n"]
)
def test_a_figure_for_every_cell(text) -> None:
    found, problems = parsed(text)
    assert problems == []
    assert cells(found) == {line.split()[0]: tuple(line.split()[1:]) for line in ALIGNED.splitlines()[1:]}
    figures = {
        (figure.section, figure.metric, figure.statistic): (figure.value, figure.unit) for figure in found.figures
    }
    assert figures["istio-system", "Mem", "avg"] == (97.5, "MiB")
    assert figures["TOTAL", "CPU", "max"] == (55, "millicores")


def test_columns_may_be_missing() -> None:
    found, problems = parsed("Namespace CPU_min CPU_max\nnginx 1m 2m\nTOTAL 1m 2m\n")
    assert (cells(found), problems) == ({"nginx": ("1m", "2m"), "TOTAL": ("1m", "2m")}, [])


def test_the_table_of_samples(tmp_path) -> None:
    samples, _ = sampled(tmp_path / "log", LOG)
    assert printed_table(samples) == cells(parsed(ALIGNED)[0])
    assert printed_table([]) == {}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("TOTAL          15m", "TOTAL          16m", "is damaged: its TOTAL is not the sum of its column CPU_min"),
        ("368.50Mi", "368.52Mi", "is damaged: its TOTAL is not the sum of its column Mem_avg"),
        ("558Mi", "557Mi", "is damaged: its TOTAL is not the sum of its column Mem_max"),
        ("30.00m ", "60.00m ", "is damaged: its CPU_min, CPU_avg and CPU_max contradict each other"),
        ("97.50Mi", "97,50Mi", "holds 1 corrupt record (line 3)"),
        ("97.50Mi", "97.50", "holds 1 corrupt record (line 3)"),
        ("97.50Mi", "", "holds 1 corrupt record (line 3)"),
        ("97.50Mi", "-97.50Mi", "holds 1 corrupt record (line 3)"),
        ("istio-system", "nginx       ", "holds 1 corrupt record (line 3)"),
        ("TOTAL", "nobody", "is truncated: it has no line TOTAL"),
    ],
)
def test_a_table_that_contradicts_itself(old, new, problem) -> None:
    assert old in ALIGNED
    found, problems = parsed(ALIGNED.replace(old, new, 1))
    assert problem in problems
    assert found.figures


def test_a_total_may_differ_by_what_was_rounded() -> None:
    text = ALIGNED.replace("30.00m ", "30.004m").replace("35.00m", "35.01m ")
    assert parsed(text)[1] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Namespace\n",
        ALIGNED.replace("Mem_avg", "Mem_p95"),
        COMMAS.replace("CPU_max", "CPU_min"),
        "hello\n",
        "\x00\x00",
    ],
)
def test_what_is_no_table(text) -> None:
    assert parsed(text) == (None, ["is damaged: it is not a table of namespaces (Namespace, CPU_min, ...)"])


def test_a_table_cut_anywhere_is_noticed() -> None:
    for end in range(len(ALIGNED.rstrip())):
        found, problems = parsed(ALIGNED[:end])
        assert problems, end
        assert (
            {row: texts for row, texts in cells(found).items() if row != "TOTAL"}.items()
            <= cells(parsed(ALIGNED)[0]).items()
            if found
            else True
        )


def test_a_log_cut_anywhere_gives_only_samples_of_the_whole(tmp_path) -> None:
    whole, _ = sampled(tmp_path / "log", LOG)
    for end in range(len(LOG)):
        found, problems = sampled(tmp_path / "log", LOG[:end])
        assert found == whole[: len(found)], end
        assert bool(problems) == (end == 0 or LOG[end - 1] != "\n"), end


@pytest.mark.parametrize(
    "row",
    [
        "2025-03-10 20:44:24,nginx,50",
        "2025-03-10 20:44:24,nginx,50,4,5",
        "2025-03-10 20:44:24,nginx,50,50m",
        "2025-03-10 20:44:24,nginx,50,50,451,451",
        "2025-03-10 20:44:24,,50,451",
        "2025-03-10 20:44:24,nginx,5,0,4,5,1",
        "2025-03-10 20:44:24,nginx,-5,451",
        "2025-03-10 20:44:24,nginx,NaN,451",
        "2025-02-30 20:44:24,nginx,5,451",
        "20:44:24,nginx,5,451",
        "2025-03-10 20:44:24,nginx,5\x00,451",
        "2025-03-10 20:44:24,nginx,99999999999999999999999,451",
    ],
)
def test_a_corrupt_row_is_counted_and_the_others_are_read(tmp_path, row) -> None:
    found, problems = sampled(tmp_path / "log", LOG.replace("2025-03-10 20:44:30,nginx,10,91", row))
    assert (len(found), problems) == (3, ["holds 1 corrupt record (line 4)"])


def test_windows_line_ends_and_hostile_names(tmp_path) -> None:
    text = LOG.replace("istio-system", "<script>\u2028'\x1b[2J").replace("\n", "\r\n")
    found, problems = sampled(tmp_path / "log", text)
    assert (len(found), problems) == (4, [])
    assert found[1].name == "<script>\u2028'\x1b[2J"


@pytest.mark.parametrize("content", [b"hello\n", b"\x00" * 100 + b"\n", b"a,b\n1,2\n", LOG[60:].encode()])
def test_what_is_no_log(tmp_path, content) -> None:
    assert sampled(tmp_path / "log", content) == (
        [],
        ["is damaged: its first line does not begin with Timestamp, Namespace"],
    )


def test_times_at_the_ends_of_the_calendar(tmp_path) -> None:
    text = LOG.replace("2025-03-10 20:44:30,nginx", "0001-01-01 00:00:00,nginx")
    found, problems = sampled(tmp_path / "log", text, timezone(timedelta(hours=5)))
    assert (len(found), problems) == (3, ["holds 1 corrupt record (line 4)"])
