"""The section of a campaign's page about several load generators."""

import json
from pathlib import Path

import pytest
from loadstone import archive
from loadstone.report import run_findings
from loadstone.report.queries import querying
from support.rawfiles import START_NS, compress, line, write_cell
from support.site import write_assets
from tables.tabling import Project

MS = 1_000_000
N = 400


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    found.aliases = {}
    lines = (
        line(seq, MS, sent_ns=START_NS + seq * MS + (3 * MS if seq % 2 else 0), attack=f"generator-{seq % 2}")
        for seq in range(N)
    )
    told = [
        {"generator": 0, "pod": "load-0<b>", "node": "east", "clock_offset_ns": 0, "clock_uncertainty_ns": MS},
        {"generator": 1, "pod": "load-1", "node": "west", "clock_offset_ns": 3 * MS, "clock_uncertainty_ns": MS},
    ]
    files = {
        "1.results.json.zst": compress(b"".join(lines)),
        "1.run.json": json.dumps({"generators": told}).encode(),
    }
    options = {"rate": "1000", "duration": f"{N}ms"}
    write_cell(
        found.archive, files, rate="1000", testOptions=options, generator={"name": "vegeta", "version": "", "count": 2}
    )
    found.make()
    return found


def test_it_tells_where_each_ran_and_how_its_clock_stood(project: Project) -> None:
    (campaign,) = archive.campaigns(project.archive)
    with querying(project.tables, [campaign]) as queries:
        found = run_findings.generators_context(queries)
    assert (found["n_generators"], found["senders_clocks"]) == (2, True)
    first, second = found["senders"]
    assert (first["place"], second["place"]) == ("load-0<b> on east", "load-1 on west")
    assert (second["n_requests"], second["clock_offset_ns"], second["start_lag_ns"]) == (N // 2, 3 * MS, 0)


@pytest.mark.parametrize(("second", "share"), [(0, True), (1, False)])
def test_it_tells_which_share_a_process(project: Project, page_of, second: int, share: bool) -> None:
    processes = enumerate((0, second))
    told = [{"generator": each, "process": process, "processor": 1 + process} for each, process in processes]
    (record,) = project.archive.rglob("1.run.json")
    record.write_text(json.dumps({"generators": told}))
    project.make()
    text = page_of(project)
    assert "process 0 on processor 1" in text
    assert ("Generators that share a process" in text) == share


def test_the_page_has_it_and_escapes_what_a_record_says(project: Project, page_of) -> None:
    text = page_of(project)
    assert '<h2 id="senders">Load generators</h2>' in text
    assert "load-0&lt;b&gt; on east" in text and "load-0<b>" not in text
    assert "2 generators shared the load" in text


@pytest.fixture
def page_of():
    from loadstone.config.variants import Variants  # noqa: PLC0415
    from support import site  # noqa: PLC0415

    def made(project: Project) -> str:
        (campaign,) = archive.campaigns(project.archive)
        reports = project.archive.parent / "reports"
        write_assets(reports)
        site.build_campaign(campaign, project.tables, reports, Variants({}), {})
        (page,) = (reports / "campaigns").glob("*.html")
        return page.read_text()

    return made
