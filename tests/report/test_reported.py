"""Pages of other tools' results: what they reported, what limits it, and what is never put together."""

import re

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.comparison import compare
from loadstone.config.comparisons import Comparison, Fit
from loadstone.config.variants import Variants
from loadstone.report import figures, numbers, reported_section
from loadstone.report.numbers import MICROSECONDS, MILLISECONDS
from report.printed import plain
from report.test_site import received
from support import foreign, rawfiles
from support.rawfiles import lines, write_cell
from support.site import build_campaign, build_comparison, build_index, write_assets
from tables.tabling import Project

BAD = "<script>alert(1)</script>"
NOTED = """\
label,scope,name,cpu_millicores,memory_mib,cpu_percent,sampled_at
before,pod,shop/web-0,,812,,
during,node,playground,,,79,
"""


def of(generator: str, load_model: str, **more) -> dict:
    """Metadata of a cell of a tool."""
    found = {"testMode": generator, "generator": {"name": generator}, "loadModel": load_model, "order": None}
    return found | ({"testOptions": {}} if load_model == "closed" else {}) | more


def make(folder, *, comparisons=()):
    """The site of the project's archive; its folder."""
    project = Project(folder)
    project.make()
    reports, campaigns = folder / "reports", list(archive.campaigns(project.archive))
    write_assets(reports)
    for campaign in campaigns:
        build_campaign(campaign, project.tables, reports, Variants({}), {})
    for each in comparisons:
        compare(each, campaigns, project.tables)
        build_comparison(each, campaigns, project.tables, reports, Variants({}), options={})
    build_index(campaigns, project.tables, reports, Variants({}), {}, comparisons=comparisons)
    return reports


def only(reports) -> str:
    (page,) = (reports / "campaigns").glob("*.html")
    return page.read_text()


def comparing(project, **more) -> Comparison:
    (campaign,) = archive.campaigns(project.archive)
    named = {"id": "all", "title": "All", "app": campaign.app, "hosts": (campaign.host,)}
    return Comparison(**(named | {"timestamps": (campaign.timestamp,)} | more))


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


# --- a campaign of reports alone -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1400, 400])
def test_a_campaign_of_reports_alone_has_a_page_without_an_empty_chart(project, tmp_path, watched, width):
    for rate in ("100", "200"):
        text = foreign.VEGETA.replace("100, 100.00, 99.90", f"{rate}, {rate}.00, 99.90").replace(
            "200:100", f"200:{rate}"
        )
        for variant in ("plain", "istio"):
            labels = {"pods": "3", BAD: BAD}
            write_cell(
                project.archive,
                {"1.vegeta.txt": text.encode()},
                rate=rate,
                variant=variant,
                **of("vegeta", "open"),
                labels=labels,
            )
    reports = make(tmp_path)
    html = plain(only(reports))
    assert "4 runs with only the load generator&#39;s report; 0 excluded. Figures are as reported, run by run." in html
    for absent in (
        "Latency over time",
        "A single run",
        "All cells",
        "Errors by class",
        BAD,
        "page_run_numbers.sql",
        "scope_rows.sql",
    ):
        assert absent not in html
    assert html.count('<td class="n">18.509</td>') == 4
    watched.page.set_viewport_size({"width": width, "height": 900})
    (page,) = (reports / "campaigns").glob("*.html")
    watched.open(page.as_uri())
    for statistic, value in (("Mean", 5.529), ("Median", 4.953), ("p99", 18.509)):
        watched.do(watched.page.get_by_role("radio", name=statistic, exact=True).first.check)
        rows = watched.view("reported", "view.data('rows')")
        assert [row["value"] for row in rows] == [value] * 4
    assert watched.page.locator("#reported .plot svg g[class*='role-mark'] > *").count() > 3
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.complaints == []


def write_reports(project, rates=("100", "200"), factors=(1, 1.1, 1.5)) -> None:
    """A report of each of plain, v1, v2, ...: the figures of `VEGETA` times the variant's factor."""
    for rate in rates:
        text = foreign.VEGETA.replace("100, 100.00", f"{rate}, {rate}.00").replace("200:100", f"200:{rate}")
        for place, factor in enumerate(factors):
            times = re.sub(
                r"(?<=min, mean).*",
                lambda found, by=factor: re.sub(r"[0-9.]+(?=ms)", lambda ms: f"{float(ms[0]) * by:.6f}", found[0]),
                text,
            )
            files = {"1.vegeta.txt": times.encode()}
            variant = f"v{place}" if place else "plain"
            write_cell(project.archive, files, rate=rate, variant=variant, **of("vegeta", "open", baseline="plain"))


def write_single_runs(project) -> None:
    for rate in ("100", "200"):
        for variant, ns in (("plain", 4_000_000), ("v1", 4_400_000)):
            raw = {"1.results.json.zst": rawfiles.compress(lines([ns] * 200, float(rate)))}
            write_cell(project.archive, raw, rate=rate, variant=variant)


@pytest.mark.parametrize("kind", ["campaigns", "comparisons"])
@pytest.mark.parametrize("written", [write_reports, write_single_runs])
def test_differences_without_verdict_are_two_dots_and_a_line_at_the_right_of_the_matrix(
    project, tmp_path, watched, kind, written
):
    written(project)
    (page,) = (make(tmp_path, comparisons=(comparing(project),)) / kind).glob("*.html")
    watched.open(f"{page.as_uri()}#stat=p50")
    rows = watched.view("dumbbell", "view.data('rows')")
    known = "statistic = 'p50' AND comparison IS NULL"
    effects = project.rows(f"SELECT * FROM effects WHERE {known} ORDER BY rate, variant")
    assert [(row["load"], row["variant"], row["baseline"]) for row in rows] == [
        (row["rate"], row["variant"], row["baseline"]) for row in effects
    ]
    assert rows and len(rows) == len(effects)
    for row, effect in zip(rows, effects, strict=True):
        assert (row["before"], row["value"]) == (effect["baseline_value"] / 1e6, effect["value"] / 1e6)
    # Two dots per row at these values, and a line from one to the other.
    drawn = """marks => marks.map((mark) => mark.getBoundingClientRect()).map(({ left, right }) => [left, right])"""
    dots = watched.page.locator("#dumbbell .plot g.mark-symbol > path").evaluate_all(drawn)
    joins = watched.page.locator("#dumbbell .plot g.mark-rule > line").evaluate_all(drawn)
    assert len(dots) == 2 * len(rows)
    middles = [(left + right) / 2 for left, right in dots]
    for before, value in zip(middles[: len(rows)], middles[len(rows) :], strict=True):
        assert any(abs(left - min(before, value)) < 2 and abs(right - max(before, value)) < 2 for left, right in joins)
    for field, places in (("before", middles[: len(rows)]), ("value", middles[len(rows) :])):
        positions = watched.view("dumbbell", f"view.data('rows').map((row) => view.scale('x')(row.{field}))")
        assert [place - places[0] for place in places] == pytest.approx(
            [position - positions[0] for position in positions], abs=0.6
        )
    texts = watched.page.locator("#dumbbell .plot text").all_text_contents()
    assert texts.count(rows[0]["shown"]) >= 1 and "Latency (ms)" in texts
    matrix, plot = (watched.page.locator(each).bounding_box() for each in ("#verdict-matrix", "#dumbbell"))
    assert plot["x"] > matrix["x"] + matrix["width"] and plot["y"] + plot["height"] < 900
    # As elsewhere, the reader chooses statistic and axes.
    assert watched.view("dumbbell", "view.scale('x').type") == "linear"
    watched.do(watched.page.get_by_role("radio", name="Log", exact=True).first.check)
    assert watched.view("dumbbell", "view.scale('x').type") == "log"
    watched.do(watched.page.get_by_role("radio", name="p90", exact=True).first.check)
    chosen = watched.view("dumbbell", "view.data('rows').map((row) => row.value)")
    assert len(chosen) == len(rows) and (written is write_single_runs or chosen != [row["value"] for row in rows])
    assert watched.complaints == []


def test_of_many_loads_the_dots_are_of_the_headline_s_alone_and_far_apart_on_a_logarithmic_axis(
    project, tmp_path, watched
):
    write_reports(project, rates=[str(100 * step) for step in range(1, 8)], factors=(1, 1.1, 90))
    (page,) = (make(tmp_path) / "campaigns").glob("*.html")
    watched.open(page.as_uri())
    assert watched.view("dumbbell", "view.data('rows').map((row) => [row.load, row.label])") == [
        [700, "v1"],
        [700, "v2"],
    ]
    assert watched.view("dumbbell", "view.scale('x').type") == "log"
    assert "at 700 requests/s" in plain(watched.page.locator("#dumbbell figcaption").inner_text())
    figures.build(page, tmp_path / "figures", {"formats": ["svg"]})
    drawn = (tmp_path / "figures/dumbbell-p50.svg").read_text()
    assert "1.10×" in drawn and "90.0×" in drawn
    ticks = [float(tick.replace(",", "")) for tick in re.findall(r">([0-9,.]+)</text>", drawn)]
    assert len(ticks) >= 2 and ticks == sorted(ticks) and ticks[0] > 0, "no zero on a logarithmic axis"


def test_a_histogram_is_drawn_by_percentile(project, tmp_path, watched):
    write_cell(project.archive, {"1.hdr.csv": foreign.HDR.encode()}, rate="5", **of("wrk2", "closed", users=5))
    reports = make(tmp_path)
    html = plain(only(reports))
    assert "all from wrk2&#39;s histogram" in html and "5 users" in html
    (page,) = (reports / "campaigns").glob("*.html")
    watched.open(page.as_uri())
    rows = watched.view("percentiles", "view.data('rows')")
    assert [(row["value"], row["share"], row["beyond"]) for row in rows] == [(2, 50, 2), (9, 100, 100)]
    assert watched.page.locator("#percentiles .plot svg g[class*='role-mark'] > *").count() > 1
    assert watched.complaints == []


def test_the_number_of_closed_load_is_of_users_everywhere(project, tmp_path, watched):
    files = {"1.k6.json": foreign.k6_json([1.0, 2.0, 3.0]), "1.k6.summary.json": foreign.k6_summary(3)}
    write_cell(project.archive, files, rate="2", **of("k6", "closed", users=2, warmupOptions={}))
    reports = make(tmp_path)
    for page in (*(reports / "campaigns").glob("*.html"), reports / "index.html"):
        assert "requests/s" not in page.read_text(), page
    (page,) = (reports / "campaigns").glob("*.html")
    watched.open(page.as_uri())
    assert "2 users" in plain(watched.page.locator("#run-name").inner_text())
    assert "requests/s" not in watched.page.locator("main").inner_text()
    assert watched.complaints == []


def test_users_with_iterations_have_a_time_limit_and_no_duration(project, tmp_path):
    stage = {"name": "test", "duration": "600s", "users": 2, "iterations": 40, "requests": 80}
    more = {"users": 2, "testOptions": {"duration": "10m"}, "stages": [stage], "measuredPhase": "test"}
    write_cell(project.archive, {"1.k6.json": foreign.k6_json([1.0] * 80)}, rate="2", **of("k6", "closed") | more)
    html = plain(only(make(tmp_path)))
    assert project.row("SELECT duration_s FROM runs") == {"duration_s": None}
    assert "40 iterations per user, at most 10 min" in html and ">10 min<" not in html


def test_what_the_tool_said_and_what_its_requests_say_are_rows_of_their_own(project, tmp_path):
    report = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5])
    write_cell(project.archive, {"1.artillery.json": report}, **of("artillery", "open", testOptions={}))
    html = plain(only(make(tmp_path)))
    for evidence in (
        "artillery&#39;s report, all phases",
        "every request, all phases",
        "every request, measured phase",
    ):
        assert evidence in html
    assert "Latencies of artillery come in whole steps of 1 ms" in html
    assert "Latency over time" not in html, "nobody knows when its requests were sent"
    cells = html.partition('id="cells-table"')[2].partition("</table>")[0]
    assert "2.50" not in cells and ">3<" in cells


def test_requests_alone_are_not_called_a_report_and_support_no_rare_percentile(project, tmp_path):
    for run in (1, 2):
        write_cell(project.archive, {f"{run}.hey.csv": foreign.HEY.encode()}, **of("hey", "closed", users=100))
    html = plain(only(make(tmp_path)))
    section = html.partition('id="reported-runs"')[2].partition("</section>")[0]
    assert section.startswith(">Run by run<")
    assert (
        "because there is no report by the load generator" in section
        and "as reported by its load generator" not in section
    )
    assert "p99.9" not in section and "p99" not in section and "Max" in section
    assert "ten of them or more are expected on either side" in section and "only one run" not in section
    assert "FROM cells')" in html


def test_runs_with_requests_count_beside_reports_alone(project, tmp_path):
    raw = {f"{run}.results.json.zst": rawfiles.compress(lines([2_000_000] * 100)) for run in (1, 2)}
    write_cell(project.archive, raw | {"3.vegeta.txt": foreign.VEGETA.encode()}, **of("vegeta", "open"))
    html = plain(only(make(tmp_path)))
    assert "As reported by the tool" in html and "only one run" not in html


def test_what_a_page_of_reports_alone_says_to_ask_has_rows(project, tmp_path):
    write_cell(project.archive, {"1.vegeta.txt": foreign.VEGETA.encode()}, **of("vegeta", "open"))
    html = plain(only(make(tmp_path)))
    assert "There is only one run of each variant at each load" in html
    (query,) = re.findall(r"\.sql\(&#39;(.+?)&#39;\)|\.sql\('(.+?)'\)", html)
    assert len(project.rows("".join(query))) == 1


# --- nothing looks finer than it is ----------------------------------------------------------------------------------


def cell(resolution_ns, **figures) -> dict:
    """A row of `cells` with a resolution."""
    names = [name for name in ("p50", "p90", "p95", "p99", "p999") for name in (name,)]
    found = {f"{name}{part}_ns": None for name in names for part in ("", "_low", "_high")}
    return found | {"resolution_ns": resolution_ns, "run_mean_ns": None} | figures


def test_no_interval_is_narrower_than_the_resolution_and_no_percentile_finer():
    row = cell(1e6, p50_ns=2.4e6, p50_low_ns=2.35e6, p50_high_ns=2.44e6, run_mean_ns=2.47e6)
    (found,) = numbers.rounded_to_steps([row])
    assert (found["p50_ns"], found["run_mean_ns"]) == (2e6, 2e6)
    assert found["p50_low_ns"] <= 1.5e6 and found["p50_high_ns"] >= 2.5e6
    assert found["p50_low_ns"] <= row["p50_low_ns"] and found["p50_high_ns"] >= row["p50_high_ns"]
    fine = cell(1, p50_ns=2.4e6, p50_low_ns=2.35e6, p50_high_ns=2.44e6)
    assert numbers.rounded_to_steps([fine, cell(None)]) == [fine, cell(None)]


def test_no_bin_of_a_histogram_is_narrower_than_the_resolution(project, tmp_path):
    latencies = [2.0] * 50 + [3.0] * 30 + [5.0] * 19 + [90.0]
    report = foreign.artillery([[1.0] * 10, [1.0] * 10, latencies, [4.0] * 3])
    write_cell(project.archive, {"1.artillery.json": report}, variant="few", **of("artillery", "open"))
    many = foreign.artillery([[1.0] * 10, [1.0] * 10, [float(ms) for ms in range(10, 110)], [10.0] * 3])
    write_cell(project.archive, {"1.artillery.json": many}, variant="many", **of("artillery", "open"))
    alike = foreign.artillery([[1.0] * 10, [1.0] * 10, [7.0] * 5, [7.0] * 5])
    write_cell(project.archive, {"1.artillery.json": alike}, variant="alike", **of("artillery", "open"))
    (file,) = (make(tmp_path) / "campaigns").glob("*/[0-9]*.js")
    runs = {run["variant"]: run for run in received(file)[1]["runs"]}
    drawn = {name: run["histogram"] for name, run in runs.items()}
    measured = project.rows("SELECT variant, count(*) AS n FROM requests WHERE phase = 'test' GROUP BY variant")
    for row in measured:
        found = drawn[row["variant"]]
        low, edge, high = found["edges"]
        assert sum(found["linear"]) + found["beyond"] == sum(found["log"]) == row["n"]
        width = (edge - low) / len(found["linear"])
        assert width >= 1 and width == pytest.approx(round(width)) and len(found["linear"]) <= 40
        assert low * ((high / low) ** (1 / len(found["log"])) - 1) >= 1 - 1e-9
    assert drawn["few"]["linear"] == [50, 30, 3, 19] and drawn["few"]["beyond"] == 1
    assert len(drawn["many"]["linear"]) == 33 and drawn["alike"]["linear"] == drawn["alike"]["log"] == [10]


def test_two_that_differ_by_a_step_or_less_are_named():
    rows = [cell(1e6, rate=50, p50_ns=2e6, p99_ns=9e6), cell(1, rate=50, p50_ns=2.9e6, p99_ns=11e6)]
    ((one, other, names),) = numbers.indistinguishable([*rows, cell(1e6, rate=60, p50_ns=2e6)], ["p50_ns", "p99_ns"])
    assert (one, other, names) == (*rows, ["p50_ns"])
    assert numbers.indistinguishable([cell(1, rate=5, p50_ns=1.0), cell(1, rate=5, p50_ns=1.0)], ["p50_ns"]) == []


@pytest.mark.parametrize(
    ("latency_ns", "unit", "resolution_ns", "text"),
    [
        (44_431_828, MILLISECONDS, 1, "44.431828"),
        (1_073_440_600, MILLISECONDS, 1, "1,073.4406"),
        (9_110_000, MILLISECONDS, None, "9.11"),
        (33_700_000_000, MILLISECONDS, 1, "33,700"),
        (2_400_000, MILLISECONDS, 1e6, "2"),
        (16_400_000, MILLISECONDS, 1e5, "16.4"),
        (16_000_000, MILLISECONDS, 1e5, "16.0"),
        (588_001, MICROSECONDS, 1, "588.001"),
        (2_000_000, MICROSECONDS, 1e6, "2,000"),
        (None, MILLISECONDS, 1, "–"),
        (float("nan"), MILLISECONDS, 1, "–"),
    ],
)
def test_a_reported_figure_has_its_tool_s_digits(latency_ns, unit, resolution_ns, text):
    assert reported_section.exact(latency_ns, unit, resolution_ns) == text


# --- comparisons across tools ----------------------------------------------------------------------------------------


def write_three_tools(project) -> None:
    write_cell(
        project.archive, {"1.results.json.zst": rawfiles.compress(lines([2_000_000] * 100))}, variant="by-vegeta"
    )
    report = foreign.artillery([[2.0] * 50] * 4, arrivals=100)
    described = of("artillery", "open", testOptions={"rate": "100"})
    write_cell(project.archive, {"1.artillery.json": report}, variant="by-artillery", **described)
    files = {"1.k6.json": foreign.k6_json([1.0, 2.0, 3.0])}
    write_cell(project.archive, files, rate="2", variant="by-k6", **of("k6", "closed", users=2))


def test_tools_are_compared_only_when_asked_by_name_and_with_what_they_mean(project, tmp_path, watched):
    write_three_tools(project)
    refused = comparing(project, id="refused")
    allowed = comparing(project, id="allowed", allow=frozenset({"generators", "load_models"}))
    reports = make(tmp_path, comparisons=(refused, allowed))
    html = plain((reports / "comparisons/refused.html").read_text())
    assert "This comparison has no figures" in html and "<figure" not in html and "<td" in html
    assert "different load generators (artillery, k6, vegeta)" in html and "allow: [generators]" in html
    assert "different load models (closed, open)" in html
    html = plain((reports / "comparisons/allowed.html").read_text())
    meanings = html.partition("What latency means for each tool")[2]
    for words in ("the first byte of the response has come", "the last byte of the body has been read", "1 ms", "1 ns"):
        assert words in meanings
    assert "by-k6 (k6, closed: users)" in html and "by-artillery (artillery, open: requests/s)" in html
    assert "Points of the two kinds at the same position of a chart do not have the same load" in html
    assert "requests/s or users" in html
    watched.open((reports / "comparisons/allowed.html").as_uri())
    rows = watched.view("latency", "view.data('rows')")
    assert len(rows) == 3 and watched.complaints == []


def test_one_variant_by_two_tools_is_two_series(project, tmp_path):
    later = "2026-12-01T09:00:00+00:00"
    report = foreign.artillery([[4.0] * 50] * 4, arrivals=100)
    moved = write_cell(project.archive, {"1.artillery.json": report}, **of("artillery", "open"), timestamp=later)
    moved.campaign.path.rename(moved.campaign.path.with_name(later))
    write_cell(project.archive, {"1.results.json.zst": rawfiles.compress(lines([2_000_000] * 100))})
    campaigns = list(archive.campaigns(project.archive))
    timestamps = tuple(campaign.timestamp for campaign in campaigns)
    both = Comparison("both", "Both", "demo", ("here",), timestamps, allow=frozenset({"generators"}))
    html = plain((make(tmp_path, comparisons=(both,)) / "comparisons/both.html").read_text())
    assert len(timestamps) == 2 and "No figure on this page combines two load generators" in html
    rows = html.partition('id="rows-table"')[2]
    assert "plain (artillery)" in rows and "plain (vegeta)" in rows


# --- what people noted, and lines ------------------------------------------------------------------------------------


def test_figures_that_people_noted_stand_beside_the_runs(project, tmp_path):
    files = {"1.vegeta.txt": foreign.VEGETA.encode(), "1.figures.csv": NOTED.encode()}
    write_cell(project.archive, files, **of("vegeta", "open"))
    reports = make(tmp_path, comparisons=(comparing(project),))
    html = plain((reports / "comparisons/all.html").read_text())
    assert "Annotations" in html
    assert "pod shop/web-0" in html and "812 MiB" in html and "79 % of the CPU" in html


def test_a_line_through_reported_latencies_and_reasons_for_none(project, tmp_path, watched):
    for pods, p99 in (("1", "18.509ms"), ("2", "19.5ms"), ("4", "21.6ms"), ("many", "70ms")):
        text = foreign.VEGETA.replace("18.509ms", p99)
        described = of("vegeta", "open", labels={"pods": pods})
        write_cell(project.archive, {"1.vegeta.txt": text.encode()}, variant=f"pods-{pods}", **described)
    fits = (Fit("pods", "p99"), Fit("pods", "cpu", "nginx"), Fit("rate", "p50"), Fit(BAD, "max"))
    reports = make(tmp_path, comparisons=(comparing(project, fits=fits),))
    rows = {(row["x"], row["of"]): row for row in project.rows("SELECT * FROM fits")}
    line = rows["pods", "p99"]
    assert (line["n_runs"], line["n_left_out"], line["unit"]) == (3, 1, "ms")
    assert line["slope"] == pytest.approx(np.polyfit([1, 2, 4], [18.509, 19.5, 21.6], 1)[0])
    assert line["slope_low"] < line["slope"] < line["slope_high"]
    assert "all runs have the same rate" in rows["rate", "p50"]["problem"]
    assert rows["pods", "cpu"]["problem"].startswith("0 runs have both")
    html = plain((reports / "comparisons/all.html").read_text())
    assert (
        "1.03 ms per pod, 95 % interval" in html and "1 run without a number of pods or such a figure excluded" in html
    )
    assert html.count("No line: ") == 3 and BAD not in html
    watched.open((reports / "comparisons/all.html").as_uri())
    drawn = watched.view("fit-0", "view.data('rows')")
    assert sum(row["kind"] == "run" for row in drawn) == 3 and sum(row["kind"] == "line" for row in drawn) > 10
    watched.page.locator("#fit-0 .data > summary").click()
    watched.page.locator("#fit-0 tbody tr").first.wait_for()
    assert watched.page.locator("#fit-0 tbody tr").count() == 3
    assert watched.complaints == []


def test_a_line_is_never_of_runs_of_two_tools(project, tmp_path):
    for rate in ("100", "200"):
        write_cell(project.archive, {"1.vegeta.txt": foreign.VEGETA.encode()}, rate=rate, **of("vegeta", "open"))
        files = {"1.k6.summary.json": foreign.k6_summary(3)}
        write_cell(project.archive, files, rate=rate[0], variant="k6", **of("k6", "closed", users=int(rate[0])))
    everything = frozenset({"generators", "load_models"})
    make(tmp_path, comparisons=(comparing(project, allow=everything, fits=(Fit("rate", "max"),)),))
    row = project.row("SELECT * FROM fits")
    assert row["n_runs"] >= 3 and row["slope"] is None and "never share a statistic" in row["problem"]
