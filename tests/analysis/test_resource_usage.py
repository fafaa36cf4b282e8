"""CPU and memory per namespace and process of a run, and their sum, as those who measured before us defined them."""

import re
from pathlib import Path

import pytest
from support.rawfiles import compress, lines, write_cell

RUN = compress(lines([2_000_000] * 100))
HEADER = "sampled_at,scope,name,cpu_millicores,memory_mib,asked_at\n"


def use(project, text: str, variant: str = "plain", run: int = 1) -> None:
    files = {f"{run}.results.json.zst": RUN, f"{run}.resources.csv.zst": compress(text.encode())}
    write_cell(project.archive, files, variant=variant)
    project.make()


def usage(project, columns: str = "scope, name, cpu_min_millicores, cpu_mean_millicores, cpu_max_millicores"):
    query = f"SELECT {columns} FROM resource_usage ORDER BY scope = 'total', scope, name"
    return [tuple(row.values()) for row in project.rows(query)]


def at(second: float, *samples: str) -> str:
    """Rows of one round; a sample is ``scope,name,cpu,memory``, and may be measured before it was asked for."""
    asked = f"2026-11-21T11:00:{second:06.3f}Z"
    return "".join(f"2026-11-21T11:00:00Z,{sample},{asked}\n" for sample in samples)


def test_a_namespace_is_the_sum_of_its_pods_in_each_round(project) -> None:
    first = at(15, "pod,shop/a,10,100", "pod,shop/b,20,200", "pod,mesh/x,5,50")
    second = at(30, "pod,shop/a,40,110", "pod,shop/c,1,1", "pod,shop/b,9,200", "pod,mesh/x,7,50")
    use(project, HEADER + first + second)
    assert usage(project) == [
        ("namespace", "mesh", 5, 6, 7),
        ("namespace", "shop", 30, 40, 50),
        ("total", "TOTAL", 35, 46, 57),
    ]
    columns = "name, n_samples, parts_min, parts_max, memory_min_mib, memory_mean_mib, memory_max_mib"
    assert usage(project, columns)[1:] == [
        ("shop", 2, 2, 3, 300, 305.5, 311),
        ("TOTAL", 2, 3, 4, 350, 355.5, 361),
    ]


def test_the_generator_and_its_machine_are_not_in_the_total(project) -> None:
    samples = ("process,app,10,1", "process,envoy,20,2", "process,generator,500,3", "node,generator,900,4")
    use(project, HEADER + at(1, *samples) + at(2, *samples))
    assert usage(project)[-1] == ("total", "TOTAL", 30, 30, 30)
    assert len(usage(project)) == 5


def test_a_round_in_which_a_figure_is_missing_has_none(project) -> None:
    use(project, HEADER + at(1, "pod,shop/a,1,1", "pod,shop/b,,2") + at(2, "pod,shop/a,3,1", "pod,shop/b,4,"))
    columns = "name, n_samples, cpu_min_millicores, cpu_max_millicores, memory_min_mib, memory_max_mib"
    assert usage(project, columns)[0] == ("shop", 2, 7, 7, 3, 3)


def test_files_without_the_moment_of_asking(project) -> None:
    text = "sampled_at,scope,name,cpu_millicores,memory_mib\n"
    text += "2026-11-21T11:00:00Z,namespace,shop,1,1\n2026-11-21T11:00:05Z,namespace,shop,3,1\n"
    use(project, text)
    assert usage(project) == [("namespace", "shop", 1, 2, 3), ("total", "TOTAL", 1, 2, 3)]
    assert project.row("SELECT count(asked_at) AS n FROM resources") == {"n": 0}


def test_names_that_are_no_usual_ones(project) -> None:
    use(project, HEADER + at(1, "pod,no-namespace,1,1", 'process,"<b>a, ""b""\n/c",2,2', "pod,/,4,4"))
    assert usage(project, "scope, name, cpu_max_millicores") == [
        ("namespace", "", 4),
        ("namespace", "no-namespace", 1),
        ("process", '<b>a, "b"\n/c', 2),
        ("total", "TOTAL", 7),
    ]


@pytest.mark.parametrize("run", ["20_1", "50_1", "20_10", "50_10", "20_50", "50_50", "20_90", "50_90"])
def test_the_published_tables_come_out_to_the_last_digit(project, shared: Path, run: str) -> None:
    folder = shared / "uds/sidecar-k3d" / run
    rows = [line.strip().split(",") for line in (folder / "resource-usage.log").read_text().splitlines()[1:]]
    # Some have columns of largest pods between: time, namespace, CPU[, ...], memory[, ...].
    samples = [(row[0].replace(" ", "T"), row[1], row[2], row[4 if len(row) > 4 else 3]) for row in rows]
    text = "".join(f"{time}Z,namespace,{name},{cpu},{memory},\n" for time, name, cpu, memory in samples)
    use(project, HEADER + text)
    made = {
        name: [
            f"{cpu[0]:.0f}m",
            f"{cpu[1]:.0f}m",
            f"{cpu[2]:.2f}m",
            f"{mem[0]:.0f}Mi",
            f"{mem[1]:.0f}Mi",
            f"{mem[2]:.2f}Mi",
        ]
        for name, *values in usage(
            project,
            "name, cpu_min_millicores, cpu_max_millicores, cpu_mean_millicores, "
            "memory_min_mib, memory_max_mib, memory_mean_mib",
        )
        for cpu, mem in [(values[:3], values[3:])]
    }
    published = (folder / "namespace-metrics-summary.txt").read_text().splitlines()[1:]
    printed = {name: figures for name, *figures in (re.split(r"[,\s]+", line.strip()) for line in published)}
    assert made == printed
    assert len(made) == 4
