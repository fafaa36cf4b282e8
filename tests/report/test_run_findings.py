"""What is known of each run on a campaign's page: its shape, how it was sent, why its requests failed."""

import json

import numpy as np
import pytest
from loadstone import archive
from loadstone.report import run_findings
from loadstone.report.numbers import MILLISECONDS
from report.conftest import SCRIPT, VARIANTS, Site
from report.printed import plain
from support import rawfiles, site
from support.site import write_assets
from tables.tabling import Project

RATE = 100
REQUESTS = 1000
UNKNOWN = f"the <b>dog</b> ate it {SCRIPT}"
REFUSED = "dial tcp 10.0.0.1:80: connect: connection refused"


def latencies_ns(seed: int, rise: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return 1e7 * (1 + rise * np.arange(REQUESTS) / REQUESTS) * random.lognormal(0, 0.1, REQUESTS)


def stalled(seed: int) -> bytes:
    """Every tenth request is sent 5 ms late."""
    return b"".join(
        rawfiles.line(seq, int(latency), sent_ns=rawfiles.START_NS + seq * 10**9 // RATE + 5_000_000 * (seq % 10 == 9))
        for seq, latency in enumerate(latencies_ns(seed))
    )


def failing(texts: list[str]) -> bytes:
    lines = rawfiles.lines(latencies_ns(9), RATE).splitlines()
    for seq, text in enumerate(texts):
        lines[10 * seq + 5] = json.dumps(json.loads(lines[10 * seq + 5]) | {"code": 0, "error": text}).encode()
    return b"\n".join(lines) + b"\n"


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Site:
    """Runs of Direct: flat, drifting up, sent late; one of Envoy whose requests failed."""
    project = Project(tmp_path_factory.mktemp("known"))
    project.aliases = {}
    options = {"testOptions": {"rate": str(RATE), "duration": "10s"}}
    runs = {
        "1.results.json": rawfiles.lines(latencies_ns(1), RATE),
        "2.results.json": rawfiles.lines(latencies_ns(2, 0.5), RATE),
        "2.run.json": json.dumps({"machine": {"cpus": 2, "load_1min": 7.52}}).encode(),
        "3.results.json": stalled(3),
    }
    rawfiles.write_cell(project.archive, runs, **options)
    texts = [REFUSED] * 5 + [UNKNOWN] * 2 + ["dial tcp: lookup shop.example: no such host"]
    rawfiles.write_cell(project.archive, {"1.results.json": failing(texts)}, variant="envoy", **options)
    serial = {"testMode": "serial"} | options
    rawfiles.write_cell(project.archive, {"1.results.json": rawfiles.lines(latencies_ns(5), RATE)}, rate="50", **serial)
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    reports = project.archive.parent / "reports"
    write_assets(reports)
    site.build_campaign(campaign, project.tables, reports, VARIANTS, {})
    return Site(reports, project.tables, {"known": campaign})


def test_runs_that_are_not_flat_are_listed_with_the_evidence(known, watched):
    watched.open(known.page("known").as_uri())
    section = watched.page.locator("section[aria-labelledby=run-shapes]")
    assert "5 runs: 4 flat, 1 drifting up" in section.inner_text()
    drifting, late = map(plain, section.locator("tbody tr").all_inner_texts())
    assert "drifting up: 5" in drifting and "% over the run, p < 0.001" in drifting
    assert "the machine was busy: a load average of 7.5 with 2 CPUs, right after the run" in drifting
    assert "busy" not in late
    assert "sent late: 99th percentile of the send lag 5.00 ms, limit 2.00 ms" in late
    watched.do(lambda: section.get_by_role("link", name="Show run 2 of Direct at 100").click())
    assert plain(watched.page.locator("#run-name").inner_text()).startswith("Run 2 of Direct at 100 ")
    assert watched.complaints == []


def test_a_mean_over_a_drifting_run_is_marked_in_the_table(known, watched):
    watched.open(known.page("known").as_uri())
    marks = watched.page.locator("#cells-table .mark")
    assert marks.all_inner_texts() == ["1 of 3 unsettled"]
    assert marks.first.get_attribute("href") == "#run-shapes"


def test_the_inspector_tells_shape_and_sending_of_a_run(known, watched):
    page = watched.page
    watched.open(f"{known.page('known').as_uri()}#rate=100&variant=plain&run=3")
    options = page.locator("select[name=run] option").all_inner_texts()
    assert [text.partition(" (")[2] for text in options] == ["", "drifting up)", "sent late)"]
    assert page.locator("#run-shape").inner_text() == "Shape: flat."
    facts = plain(page.locator("#run-sending dl").inner_text())
    assert "Send lag, p99\n5.00 ms" in facts and ": exceeded" in facts
    rows = page.locator("#run-sending tbody tr").all_inner_texts()
    told = [row.split("\t")[1:] for row in rows]
    assert [cells.pop() for cells in told] == ["not estimable"] * 2, "p99.9 of 1,000 requests"
    observed, corrected = ([float(cell.split()[0]) for cell in cells] for cells in told)
    raw = latencies_ns(3) / 1e6
    due = raw + 5 * (np.arange(REQUESTS) % 10 == 9)
    for told, expected in ((observed, raw), (corrected, due)):
        wanted = [expected.mean(), *np.percentile(expected, [50, 90, 99])]
        assert told == pytest.approx(wanted, rel=6e-3)
    watched.do(lambda: page.locator("select[name=run]").select_option("2"))
    assert "drifting up" in page.locator("#run-shape").inner_text()
    assert "not that of a steady state" in page.locator("#run-shape.notice").inner_text()
    watched.open(f"{known.page('known').as_uri()}#rate=50&variant=plain&run=1")
    assert "serial load" in page.locator("#run-sending").inner_text()
    assert watched.complaints == []


def test_the_warning_of_late_sending_is_that_of_the_table(known, watched):
    watched.open(known.page("known").as_uri())
    assert "Limited by the load generator" in watched.page.locator("#caveats .serious").all_inner_texts()[-1]
    text = plain(watched.page.locator("section[aria-labelledby=claims]").inner_text())
    assert "The load generator fell behind in 1 of" in text
    assert "of the send lag is up to 5 ms, the limit is 2 ms" in text


def test_causes_say_side_number_cells_and_an_example_and_unknown_texts_are_listed(known, watched):
    watched.open(known.page("known").as_uri())
    rows = watched.page.locator("section[aria-labelledby=causes] tbody tr").all_inner_texts()
    assert [row.split("\t")[0].split("\n")[0].strip() for row in rows] == [
        "nobody listened",
        "no response, with an unknown error text",
        "the name was not resolved",
    ]
    assert "the target" in rows[0] and "\t5" in rows[0] and "Envoy at 100" in rows[0]
    assert "connection refused" in rows[0] and "<address>" in rows[0]
    assert "load generator" in rows[2] and "lookup <name>" in rows[2]
    texts = watched.page.locator("section[aria-labelledby=causes] .problems li").all_inner_texts()
    assert any(text.startswith("2 requests: the <b>dog</b> ate it <script>") for text in texts)
    assert watched.complaints == []


@pytest.mark.long
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(known, watched):
    for width in (1400, 400):
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.open(f"{known.page('known').as_uri()}#rate=100&variant=plain&run=3")
        watched.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            watched.page.emulate_media(color_scheme=scheme)
            assert watched.violations() == {}


def test_a_phone_shows_what_was_found_of_each_run(known, watched):
    watched.page.set_viewport_size({"width": 400, "height": 800})
    watched.open(known.page("known").as_uri())
    rows = watched.page.locator("section[aria-labelledby='run-shapes'] tbody tr").all()
    assert rows
    for row in rows:
        found, box = row.locator("td.text").bounding_box(), row.bounding_box()
        assert found["x"] + found["width"] <= 400 and found["width"] > 200 and box["height"] < 200


EMPTY = dict.fromkeys(
    (
        *(
            "shapes",
            "half_ratio",
            "trend_share",
            "trend_p",
            "change_share",
            "warmup_requests",
            "warmup_s",
            "warmup_share",
            "change_seqs",
            "levels_ns",
        ),
        *("period_requests", "period_s", "period_p", "period_share", "dip", "dip_p", "resolution_ns"),
    )
)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"shape": "flat"}, "flat"),
        (
            {"shape": "drifting up", "trend_share": 0.312, "change_share": 0.312, "trend_p": 1e-9},
            "drifting up: 31 % over the run, p < 0.001",
        ),
        (
            {"shape": "drifting up", "trend_share": 0.2, "change_share": 0.48, "trend_p": 1e-9},
            "drifting up: 48 % over the run, most of it at the start",
        ),
        (
            {"shape": "still warming up", "warmup_share": 0.5, "warmup_requests": 1200, "warmup_s": 2.25},
            "still warming up: its slow start raises the mean by 50 %; it ends after 1,200 requests (2.25 s)",
        ),
        (
            {"shape": "changing level", "change_seqs": [3000], "levels_ns": [5.1e6, 9.3e6], "resolution_ns": 1_000_000},
            "changing level: 5 to 9 ms, at request 3,000",
        ),
        (
            {"shape": "uneven", "half_ratio": 34.4095},
            "uneven: its first half took 34.4 times as long as its second (mean latency)",
        ),
        (
            {"shape": "uneven", "half_ratio": 0.25},
            "uneven: its second half took 4 times as long as its first (mean latency)",
        ),
        (
            {"shape": "periodic", "shapes": ["periodic", "several modes"], "period_s": 5.0, "period_p": 0.012},
            "periodic: every 5 s, p = 0.012; also several modes",
        ),
    ],
)
def test_shapes_in_words(row, said):
    assert run_findings.shape_text(EMPTY | row, MILLISECONDS) == said
