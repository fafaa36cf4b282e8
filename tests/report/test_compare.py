"""Any two series, compared in the browser: figures as in tables to the last digit, refusals, names, the address."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis import conclusions
from loadstone.analysis.caveats import CAVEATS
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Series, Settings
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.percentiles import LATENCIES
from loadstone.report.numbers import MILLISECONDS, rate_name, significant
from loadstone.report.output import visible
from loadstone.report.series_data import STATISTICS
from loadstone.report.site_layout import slug
from loadstone.stats import contrasts
from loadstone.tables import database
from report.printed import plain
from support import rawfiles, shapes, site
from support.rawfiles import TIMESTAMP, write_cell
from tables.tabling import Project

LATER = "2026-12-01T11:00:00+00:00"
HOSTILE = "<|script><b>x"
ENDING = '<|option>"&quot; \u202ex'
SHOWN = visible(ENDING)
BLOCKS = {"kind": "blocks", "positions": [1, 2, 3, 4]}
RATES, RUNS, REQUESTS = (100, 200), 4, 300
ADDED_MS = {"plain": 0.0, "mesh": 1.0, "failing": 0.3, HOSTILE: 3.0, ENDING: 0.02}
OVER = {"plain": (), "mesh": ("plain",), HOSTILE: ("mesh",)}
VARIANTS = Variants(
    {"demo": {name: {"label": f"{name} & co", "over": list(OVER.get(name, ()))} for name in ("plain", "mesh", HOSTILE)}}
)
SETTINGS = Settings(order=("plain", "mesh", HOSTILE), over=OVER)
OF_BOTH = (*ADDED_MS, "once")
BOTH = Comparison("both", f"Both {HOSTILE}", "demo", ("here",), (TIMESTAMP, LATER), variants=OF_BOTH)
MIXED = Comparison("mixed", "Two protocols", "demo", ("here",), (TIMESTAMP,), variants=("plain", "other protocol"))


def _latencies(variant: str, rate: int, run: int, at: str) -> np.ndarray:
    drawn = np.random.default_rng([run, rate, len(variant), at == LATER])
    level_ms = (2 + ADDED_MS.get(variant, 0.5)) * (1 + rate / 1000) * np.exp(0.02 * drawn.normal())
    return (level_ms * 1e6 * drawn.lognormal(0, 0.2, REQUESTS)).astype(np.int64)


def _write(project: Project, variant: str, rate: int, *, at: str = TIMESTAMP, runs: int = RUNS, **about) -> None:
    files, protocol = {}, about.pop("protocol", "http1")
    share, requests = about.pop("failing", 0), about.pop("requests", REQUESTS)
    for run in range(1, runs + 1):
        codes = np.where(np.random.default_rng([run, rate]).random(REQUESTS) < share, 503, 200)
        each = enumerate(zip(_latencies(variant, rate, run, at)[:requests], codes, strict=False))
        start = rawfiles.START_NS
        content = b"".join(
            rawfiles.line(seq, int(ns), sent_ns=start + round(seq * 1e9 / rate), code=int(code))
            for seq, (ns, code) in each
        )
        files[f"{run}.results.json.zst"] = rawfiles.compress(content)
        negotiated = {"protocol": protocol}
        record = {"run": run, "identity": {"negotiated": negotiated}, "negotiated": [negotiated | {"handshakes": 1}]}
        files[f"{run}.run.json"] = json.dumps(record).encode()
    options = {"rate": str(rate), "duration": f"{REQUESTS / rate:g}s", "timeout": "20s"}
    write_cell(
        project.archive,
        files,
        rate=str(rate),
        variant=variant,
        at=at,
        order=BLOCKS,
        runs=runs,
        testOptions=options,
        **about,
    )


def _write_coarse(project: Project, variant: str, users: int) -> None:
    """A cell of hey, which writes latencies in steps of 0.1 ms."""
    files, head = {}, "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
    for run in range(1, RUNS + 1):
        seconds = enumerate(_latencies(variant, users, run, TIMESTAMP) / 1e9)
        rows = (f"{each:.4f},0.0000,0.0000,0.0000,{each:.4f},0.0000,200,{seq / users:.4f}\n" for seq, each in seconds)
        files[f"{run}.hey.csv"] = (head + "".join(rows)).encode()
    about = {"testMode": "hey", "generator": {"name": "hey"}, "loadModel": "closed", "testOptions": {}, "order": BLOCKS}
    write_cell(project.archive, files, rate=str(users), variant=variant, host="coarse", runs=RUNS, **about)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """Campaigns of one host at two times, one each of two others (`coarse`: latencies in steps of 0.1 ms)."""
    project = Project(tmp_path_factory.mktemp("compare"))
    for rate in RATES:
        for variant in ADDED_MS:
            failing = 0.1 if variant == "failing" else 0
            _write(project, variant, rate, failing=failing)
            _write_coarse(project, variant, rate)
        for variant in ("plain", "mesh"):
            _write(project, variant, rate, at=LATER)
    _write(project, "short", 100, requests=100)
    _write(project, "once", 100, runs=1)
    _write(project, "other protocol", 100, protocol="http2")
    _write(project, "plain", 100, host="there")
    for variant, runs, mean_ns in (("reported", 1, 5e6), ("reported later", 1, 6e6), ("reported twice", 2, 7e6)):
        files = {f"{run}.summary.json": shapes.summary(mean_ns, {"200": 100}) for run in range(1, runs + 1)}
        write_cell(project.archive, files, variant=variant, runs=runs)
    project.convert()
    project.analyse(settings=SETTINGS)
    return project


@pytest.fixture(scope="module")
def reports(project) -> Path:
    reports, campaigns = project.tables.parent / "reports", list(archive.campaigns(project.archive))
    site.write_assets(reports)
    for campaign in campaigns:
        site.build_campaign(campaign, project.tables, reports, VARIANTS, {})
    for declared in (BOTH, MIXED):
        held = [each for each in campaigns if each.host == "here" and each.timestamp in declared.timestamps]
        compare(declared, held, project.tables, SETTINGS)
        site.build_comparison(declared, held, project.tables, reports, VARIANTS, options={})
    site.build_index(campaigns, project.tables, reports, VARIANTS, {}, comparisons=[BOTH, MIXED])
    return reports


def folder(project: Project, host: str = "here", at: str = TIMESTAMP) -> str:
    found = archive.campaigns(project.archive)
    return f"campaigns/{slug(next(each for each in found if (each.host, each.timestamp) == (host, at)))}"


class Compared:
    """The page, and what it shows of two series."""

    def __init__(self, watched, reports: Path) -> None:
        self.watched, self.page = watched, watched.page
        watched.page.goto((reports / "compare.html").as_uri())
        self._ready()

    def _ready(self) -> None:
        self.page.evaluate("new Promise((done) => setTimeout(() => setTimeout(done)))")
        self.page.locator("#result:not([aria-busy])").wait_for(state="attached")

    def choose(self, stat: str, a: tuple[str, str, str], b: tuple[str, str, str]) -> dict[str, list[str]]:
        """The rows of the table by their heading: figure, interval and runs; a series is its folder, variant, load."""
        self.page.evaluate(
            "(chosen) => { location.hash = new URLSearchParams(chosen); }",
            {"stat": stat}
            | dict(zip(("a", "av", "al"), a, strict=True))
            | dict(zip(("b", "bv", "bl"), b, strict=True)),
        )
        self._ready()
        return self.rows()

    def rows(self) -> dict[str, list[str]]:
        cells = "[...row.cells].map((cell) => cell.innerText)"
        shown = self.page.evaluate(f"[...document.querySelectorAll('#figures tbody tr')].map((row) => {cells})")
        return {cells[0][:1]: list(map(plain, cells[1:])) for cells in shown}

    @property
    def sentence(self) -> str:
        return plain(self.page.locator("#sentence").inner_text())


@pytest.fixture
def compared(watched, reports) -> Compared:
    return Compared(watched, reports)


def verdict_rows(watched, page: Path) -> list[list[list[str]]]:
    """The cells of a page's table of verdicts, each as its lines."""
    watched.open(page.as_uri())
    rows = "[...document.querySelectorAll('#effects-table tbody tr')]"
    text = "node.textContent.replaceAll('\u00a0', ' ')"
    lines_of = f"[...cell.childNodes].map((node) => {text}).filter((text) => text.trim())"
    return watched.page.evaluate(f"{rows}.map((row) => [...row.cells].map((cell) => {lines_of}))")


def _ends(interval: str) -> list[float]:
    return [float(end.replace(",", "").replace("−", "-")) for end in interval.strip("[]").split(", ")]


def _options(compared: Compared, name: str) -> dict[str, str]:
    """Values of a field by their texts."""
    found = compared.page.locator(f"select[name={name}] option")
    return dict(found.evaluate_all("all => all.map((each) => [each.textContent, each.value])"))


@pytest.mark.parametrize("source", ["campaign", "coarse", "comparison"])
def test_pairs_of_the_tables_have_their_figures_to_the_last_digit(project, reports, watched, source):
    places = {"campaign": "here", "coarse": "coarse"}
    of = folder(project, places[source]) if source in places else "comparisons/both"
    rows = verdict_rows(watched, reports / f"{of}.html")
    assert len(rows) > 30
    compared, names = Compared(watched, reports), {text: name for name, text in STATISTICS.items()}
    checked = turned = 0
    for load, variant, name, _, ratio, shift, before, after, *_, why in random.Random(5).sample(rows, len(rows)):
        statistic, points = names[name[0]], name[0] == "Error fraction"
        a = (of, "plain", load[0])
        compared.choose(statistic, a, (of, variant_of(compared, of, variant[-1]), load[0]))
        if "Not compared" in compared.sentence:
            is_known = why[0] in compared.sentence or variant[-1].startswith("reported")
            assert is_known and not ratio[1:], compared.sentence
            continue
        unit = "" if points else " ms"
        found = compared.rows()
        assert source != "coarse" or points or len(before[0].partition(".")[2]) == 1  # in steps of 0.1 ms
        assert found["A"][0] == before[0] + unit and found["B"][0] == after[0] + unit
        assert found["D"][:2] == [shift[0] + unit, *(shift[1:] or ["–"])], (variant, name, load)
        assert found["R"][:2] == [ratio[0], *(ratio[1:] or ["–"])], (variant, name, load)
        checked += bool(shift[1:])
        if shift[1:] and not points and checked % 5 == 0:
            low, high = _ends(shift[1])
            compared.page.get_by_role("button", name="Swap A and B").click()
            compared._ready()
            assert _ends(compared.rows()["D"][1]) == [-high, -low]
            turned += 1
    assert checked > 25 and turned > 2
    assert watched.complaints == []


def test_layers_have_the_overhead_of_the_table(project, compared):
    of_layers = "FROM layers WHERE comparison IS NULL AND host = 'here' AND below <> 'plain'"
    rows = project.rows(f"{of_layers} AND added_low_ns IS NOT NULL")
    assert len(rows) == len(RATES) * len(LATENCIES)
    here = folder(project)
    for row in rows:
        load = rate_name(row["rate"])
        found = compared.choose(row["statistic"], (here, row["below"], load), (here, row["variant"], load))
        ends = [significant(MILLISECONDS.of(row[f"added_{end}_ns"])) for end in ("low", "high")]
        assert found["D"][:2] == [f"{significant(MILLISECONDS.of(row['added_ns']))} ms", f"[{', '.join(ends)}]"]
        assert "pooled over the cells of demo on here" in compared.page.locator("#notes").inner_text()


def variant_of(compared: Compared, of: str, text: str) -> str:
    """The value of the variant with this label."""
    if compared.page.locator("select[name=b]").input_value() != of:
        compared.choose("p50", (of, "plain", "100"), (of, "plain", "200"))
    return _options(compared, "bv")[text]


def series_of(project: Project) -> dict[tuple[str, str, str], Series]:
    """All series with replicates, by folder, variant and load."""
    found = {}
    for campaign in archive.campaigns(project.archive):
        with database.connect(project.tables, [campaign]) as connection:
            scope = conclusions.scope_of_campaign(connection, campaign, project.tables, SETTINGS)
        key = folder(project, campaign.host, campaign.timestamp)
        for each in scope.series:
            if (
                each.evidence == "requests"
                and campaign.host == "here"
                and each.variant not in ("once", "other protocol")
            ):
                found[key, each.variant, rate_name(each.rate)] = each
    return found


def test_other_pairs_rest_on_their_two_series_alone(project, compared):
    known, drawn = series_of(project), random.Random(6)
    for _ in range(40):
        one, other = drawn.sample(list(known), 2)
        # Pairs of the tables (with the baseline, and layers) are those of the other test.
        if one[0] == other[0] and one[2] == other[2] and {"plain", HOSTILE} & {one[1], other[1]}:
            continue
        statistic = drawn.choice(LATENCIES)
        paired = known[one].blocks == known[other].blocks and one[2] == other[2]
        sides = [known[each].replicates for each in (one, other)]
        expected = contrasts.contrast(*sides, statistic, paired=paired, confidence=0.95, step=known[one].resolution_ns)
        found = compared.choose(statistic, *((of, visible(name), load) for of, name, load in (one, other)))
        ends = [significant(MILLISECONDS.of(end)) for end in (expected.shift_low, expected.shift_high)]
        assert found["D"][1] == f"[{', '.join(ends)}]", (one, other, statistic)
        assert found["R"][1] == f"[{significant(expected.ratio_low)}, {significant(expected.ratio_high)}]"
        notes = compared.page.locator("#notes").inner_text()
        assert "these two series alone" in notes
        assert ("The loads differ" in notes) == (one[2] != other[2])
        assert ("different campaigns" in notes) == (one[0] != other[0])


def test_caveats_of_either_series_are_named_with_a_link_to_their_details(project, compared):
    here, shown = folder(project), compared.page.locator("#notes .caveats")
    of_cell = (
        "list_contains(list_transform(cells, lambda cell: [cell.variant, cell.rate::VARCHAR]), ['failing', '100.0'])"
    )
    of_campaign = f"comparison IS NULL AND host = 'here' AND list_contains(timestamps, '{TIMESTAMP}')"
    serious = project.rows(
        f"SELECT DISTINCT claim FROM claims WHERE weight = 'serious' AND {of_cell} AND {of_campaign}"
    )
    headings = {CAVEATS[row["claim"]].heading for row in serious}
    assert CAVEATS["failures"].heading in headings
    compared.choose("p50", (here, "plain", "100"), (here, "failing", "100"))
    (of_b,) = [
        text for text in map(plain, shown.all_inner_texts()) if "Caveats of B (failing at 100 requests/s)" in text
    ]
    assert all(heading in of_b for heading in headings)
    assert shown.last.locator("a").get_attribute("href") == f"{here}.html#claims"
    compared.choose("error_fraction", (here, "plain", "100"), (here, "failing", "100"))
    assert CAVEATS["failures"].heading not in compared.page.locator("#notes").inner_text()


REFUSED = {
    "other protocol": "requests were sent over different protocols",
    "short": "none of its 4 runs is compared: 100 requests instead of 300",
    "reported": "some runs have every request, others only the tool's report",
}


@pytest.mark.parametrize("variant", REFUSED)
def test_what_is_not_compared_elsewhere_is_refused_with_the_reason(project, compared, variant):
    here = folder(project)
    compared.choose("p50", (here, "plain", "100"), (here, variant, "100"))
    assert compared.sentence.startswith("Not compared: ") and REFUSED[variant] in compared.sentence
    assert not compared.page.locator("#figures").is_visible()
    compared.choose("p50", (here, "plain", "100"), (here, "mesh", "100"))
    assert "Not compared" not in compared.sentence and compared.page.locator("#figures").is_visible()
    assert compared.page.locator("#result .files").is_visible()


def test_hosts_comparisons_without_figures_and_single_runs(project, compared):
    here, there = folder(project), folder(project, "there")
    compared.choose("p50", (here, "plain", "100"), (there, "plain", "100"))
    assert "different hosts (here and there), which only a declared comparison with allow: [hosts]" in compared.sentence
    compared.choose("p50", (here, "plain", "100"), ("comparisons/mixed", "plain", "100"))
    assert "Two protocols has no figures: its runs were sent over different protocols" in compared.sentence
    compared.choose("p50", (here, "plain", "100"), (here, "plain", "100"))
    assert compared.sentence == "Not compared: A and B are the same series."
    assert not compared.page.locator("#result .files").is_visible()  # they would save what was compared before
    found = compared.choose("p50", (here, "plain", "100"), (here, "once", "100"))
    assert "without an interval: once at 100 requests/s has one run: the spread" in compared.sentence
    assert found["D"][1] == found["R"][1] == "–" != found["R"][0]
    compared.choose("error_fraction", (here, "plain", "100"), (here, "mesh", "100"))
    assert compared.sentence.endswith("without an interval: no request failed on either side.")
    assert compared.watched.complaints == []


def test_reported_figures_are_compared_without_an_interval(project, compared):
    here = folder(project)
    found = compared.choose("mean", (here, "reported", "100"), (here, "reported later", "100"))
    assert "is 6.00 ms, 1.20 times the 5.00 ms of A" in compared.sentence
    assert "without an interval: reported at 100 requests/s has one run: the spread" in compared.sentence
    assert (found["D"][0], found["R"][0], found["D"][1]) == ("1.00 ms", "1.20", "–")
    compared.choose("mean", (here, "reported twice", "100"), (here, "reported twice", "100"))
    assert "the same series" in compared.sentence
    compared.choose("p50", (here, "reported", "100"), (here, "reported twice", "100"))
    assert compared.sentence == "Not compared: the reports of reported do not have this figure."
    # Without a choice of the reader, the statistic is one that both have.
    chosen = {"a": here, "av": "reported", "al": "100", "b": here, "bv": "reported later", "bl": "100"}
    compared.page.evaluate("(chosen) => { location.hash = new URLSearchParams(chosen); }", chosen)
    compared.page.locator("#figures").wait_for()
    assert compared.page.locator("select[name=stat]").input_value() == "mean"
    assert "the reported mean of B (reported later) is 6.00 ms" in compared.sentence
    assert compared.watched.complaints == []


def test_names_are_text_and_the_address_has_the_choices(project, compared, reports, browser):
    here, page = folder(project), compared.page
    for side in (0, 1):
        page.get_by_label("Campaign or comparison").nth(side).select_option(here)
        compared._ready()
    page.get_by_label("Variant").nth(0).select_option(HOSTILE)
    compared._ready()
    page.get_by_label("Variant").nth(1).select_option(label=SHOWN)
    compared._ready()
    page.get_by_label("Load").nth(1).select_option("100")
    page.get_by_label("Statistic").select_option("p99")
    compared._ready()
    assert (
        f"p99 of B ({SHOWN} at 100 requests/s)" in compared.sentence and f"of A ({HOSTILE} & co at" in compared.sentence
    )
    assert page.locator("main :is(b, script)").count() == 0
    said, address = compared.sentence, page.url
    assert "stat=p99" in address
    page.go_back()
    compared._ready()
    assert page.get_by_label("Statistic").input_value() == "p50" and "median of B" in compared.sentence
    page.goto("about:blank")
    page.goto(address)
    compared._ready()
    assert compared.sentence == said
    page.goto((reports / f"{here}.html").as_uri())
    page.get_by_role("link", name="Compare any two series").click()
    compared._ready()
    assert page.get_by_label("Campaign or comparison").nth(0).input_value() == here
    assert compared.watched.complaints == []
    assert all(each.startswith((reports.as_uri(), "about:", "data:,")) for each in compared.watched.requests)


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_it_is_accessible_and_fits(project, compared, width, scheme):
    page, here = compared.page, folder(project)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for variant in (HOSTILE, "short"):
        compared.choose("p99", (here, "plain", "100"), (here, variant, "100"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert compared.watched.violations() == {}


def test_numbers_are_rounded_as_in_python(compared):
    drawn = random.Random(7)
    values = [drawn.choice((1, -1)) * 10 ** drawn.uniform(-6, 7) for _ in range(2000)]
    values += [round(each, digits) for each in values[:500] for digits in (1, 2, 3)]
    values += [0.125, 2.125, 2.375, 0.0625, 1234.5, 1235.5, -2.125, 999.5, 1000.0, 0.001, 0.0]
    found = compared.page.evaluate("(values) => values.map(loadstone.significant)", values)
    assert found == [significant(each) for each in values]
