"""The site as files: what is written, what it says, how large it is."""

import json
import os
import re
from html.parser import HTMLParser
from importlib.resources import files
from operator import itemgetter

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from loadstone import sql
from loadstone.archive import Campaign
from loadstone.config.variants import Style
from loadstone.percentiles import LATENCIES, SHOWN_PERCENTILES
from loadstone.report import figures, numbers, queries, rate_data, run_findings, site_layout
from loadstone.report.numbers import MILLISECONDS
from loadstone.report.output import as_json
from loadstone.report.queries import querying
from loadstone.report.site_layout import slug
from loadstone.tables.database import connect
from report.conftest import ENDING, SCRIPT, VARIANTS
from report.synthetic import Made, write
from support import site
from support.site import write_assets


def requests_at_200(made_site) -> np.recarray:
    """The hostile campaign's requests at one rate, in the order of sending."""
    query = "SELECT variant, run, phase, seq, latency_ns, code FROM requests WHERE rate = 200 ORDER BY seq"
    found = connect(made_site.tables, [made_site.campaigns["hostile"]]).sql(query).fetchnumpy()
    return np.rec.fromarrays(list(found.values()), names=list(found))


@pytest.mark.parametrize(("query", "table"), queries._NEEDED.items())
def test_queries_that_are_skipped_have_no_rows_without_their_table(made_site, query, table):
    text = sql.load(query)
    values = {"doubtful": ["killed"], "shown": 9, "each": 9, "nearly": 0.9, "rates": [100.0, 200.0], "bins": 9}
    with querying(made_site.tables, None) as asked:
        asked.connection.execute(f"DROP VIEW IF EXISTS temp.{table}")
        assert asked.connection.execute(f"FROM {table}").fetchall() == []
        assert asked.connection.execute("FROM runs").fetchall()
        used = {name: value for name, value in values.items() if f"${name}" in text}
        assert asked.connection.execute(text, used).fetchall() == []


class Page(HTMLParser):
    """What a browser would see of a page: elements, texts and JSON."""

    def __init__(self, path):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.json: dict[str, object] = {}
        self._data = None
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._data = attributes["id"] if attributes.get("type") == "application/json" else None

    def handle_data(self, data):
        if self._data:
            self.json[self._data] = json.loads(data)
            self._data = None
        else:
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))


def received(path):
    """The rate and the content that a data file hands to the page."""
    text, comment, _ = path.read_text("utf-8").rpartition("// ")
    assert comment and text.startswith("loadstone.receive(") and text.endswith(");\n")
    return json.loads("[" + text[len("loadstone.receive(") : -len(");\n")] + "]")


def test_pages_hold_no_inline_script_handler_style_or_outside_address(made_site):
    assert len(made_site.pages) == 10
    for path in made_site.pages:
        for tag, attributes in Page(path).elements:
            assert not any(attribute.startswith("on") or attribute == "style" for attribute in attributes), attributes
            if tag == "script":
                assert attributes.get("type") == "application/json" or re.fullmatch(
                    r"(\.\./)?assets/[a-z]+\.js", attributes["src"]
                )
            for attribute in ("src", "href", "action"):
                assert not re.match(r"([a-z]+:)?//", attributes.get(attribute) or "", re.IGNORECASE)


def test_hostile_names_are_text(made_site):
    page, quality = Page(made_site.page("hostile")), Page(made_site.reports / "quality.html")
    for shown in (page, quality):
        assert "incomplete: 3 of <b>9</b> requests" in shown.text
        assert "<b>notes</b>.txt" in shown.text
    for name in ("index", "campaigns", "quality"):
        text = Page(made_site.reports / f"{name}.html").text
        assert SCRIPT in text and ENDING in text and SCRIPT.replace("/", "") in text
    for path in made_site.pages:
        shown = Page(path)
        assert "Results of <us> & them" in shown.text
        # Of a map of runs, the marks are such elements.
        assert not [tag for tag, attributes in shown.elements if tag in ("b", "i") and "class" not in attributes]
    assert {variant["name"] for variant in page.json["page-data"]["variants"]} == {"plain", SCRIPT, ENDING}
    for path in made_site.data("hostile").iterdir():
        assert "<" not in path.read_text("utf-8")


def test_json_in_a_page_can_end_nothing():
    text = as_json({"</script>": "<!-- & -->\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script>": "<!-- & -->\u2028"}


def test_the_index_lists_campaigns_newest_first_with_what_they_hold(made_site):
    text = Page(made_site.reports / "index.html").text
    hostile = made_site.campaigns["hostile"]
    # 09:00 at -04:00 is later than 11:30 at +00:00.
    assert text.index(hostile.app) < text.index("demo on myhost") < text.index("demo on other")
    assert "18 of 18 planned" in text and "18 of 27 planned" not in text
    assert re.search("24 of 27 planned runs ?, 3 excluded ?, 3 missing", text)
    assert "This campaign is not in the tables yet" in text
    assert re.search(r"Campaigns 3 .* Valid runs 39 Excluded runs 3 Missing runs 3", text)


def test_an_empty_archive_says_how_to_collect(tmp_path):
    path = site.build_index([], tmp_path / "tables", tmp_path / "reports", VARIANTS, {})
    text = Page(path).text
    assert "No campaign yet" in text and "snakemake --cores all" in text and "make demo" in text


def test_a_page_names_excluded_runs_and_why_where_they_are_few(tmp_path):
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    write(tmp_path / "tables", campaign, Made(["plain", "envoy"], [100.0], runs=3, requests=60, excluded=("plain", 2)))
    write_assets(tmp_path / "reports")
    path = site.build_campaign(campaign, tmp_path / "tables", tmp_path / "reports", VARIANTS, {})
    ((reason,),) = duckdb.sql(
        f"SELECT DISTINCT exclusion_reason FROM read_parquet('{tmp_path}/tables/runs/**/*.parquet') WHERE excluded"
    ).fetchall()
    text = Page(path).text
    assert f"6 of 6 planned runs collected; 1 excluded (run 2 of Direct at 100: {reason}), so the figures" in text


def test_a_page_says_what_it_rests_on(made_site):
    assert "18 of 18 planned runs collected; 0 excluded." in Page(made_site.page("good")).text
    text = Page(made_site.page("hostile")).text
    assert "24 of 27 planned runs collected; 3 excluded, so the figures are based on 21 runs." in text
    assert "No request failed: every request" in Page(made_site.page("good")).text
    assert "HTTP 503, sender unknown" in text and "Timeout" in text


def test_the_page_s_figures_are_the_tables_(made_site):
    campaign = made_site.campaigns["hostile"]
    cells = connect(made_site.tables, [campaign]).sql("FROM cells ORDER BY rate, variant").to_arrow_table()
    page = figures.read(made_site.page("hostile"))

    def shown(chart, name):
        return sorted(page.rows(page.charts[chart], name), key=itemgetter("load", "variant"))

    assert len(cells) == 9
    for name in SHOWN_PERCENTILES:
        both = zip(shown("latency", name), shown("success", name), cells.to_pylist(), strict=True)
        for row, success, cell in both:
            assert (row["load"], row["variant"], row["runs"]) == (cell["rate"], cell["variant"], cell["n_runs"])
            assert row["value"] == pytest.approx(cell[f"{name}_ns"] / 1e6, rel=1e-5)
            assert row["estimable"] == cell[f"{name}_estimable"]
            if cell[f"{name}_low_ns"] is None:
                assert row["low"] is None and row["high"] is None
            else:
                ends = [cell[f"{name}_{end}_ns"] / 1e6 for end in ("low", "high")]
                assert [row["low"], row["high"]] == pytest.approx(ends, rel=1e-5)
            assert success["value"] == pytest.approx(cell[f"ok_{name}_ns"] / 1e6, rel=1e-5)
    for row, failed, cell in zip(shown("latency", "mean"), shown("failed", None), cells.to_pylist(), strict=True):
        assert row["value"] == pytest.approx(cell["run_mean_ns"] / 1e6, rel=1e-5)
        assert row["high"] - row["low"] == pytest.approx(2 * cell["run_std_ns"] / 1e6, rel=1e-2, abs=1e-4)
        assert failed["share"] == pytest.approx(100 * cell["error_fraction"])


def test_the_table_of_cells_says_why_there_is_no_interval(made_site):
    text = Page(made_site.page("hostile")).text
    assert "too few requests" in text and "one run" in text


@pytest.mark.parametrize(
    ("n_runs", "p99_ns", "n_timeouts", "resolution_ns", "why"),
    [
        (1, 5e9, 0, 1.0, "one run"),
        (3, 5e9, 9, 1.0, "may time out"),
        (3, 5e9, 0, 1.0, "runs differ too much"),
        (3, 0.0, 0, 1e6, "too fast for the clock"),
        (3, 0.0, 0, 1.0, "latencies of 0"),
    ],
)
def test_why_there_is_no_interval(n_runs, p99_ns, n_timeouts, resolution_ns, why):
    known = {"n_requests": 10_000, "p99_low_ns": None, "p99_estimable": True, "n_timeouts": n_timeouts}
    cell = known | {"n_runs": n_runs, "p99_ns": p99_ns, "resolution_ns": resolution_ns}
    assert numbers.interval_text(cell, "p99", MILLISECONDS) == why


def test_an_interval_that_is_too_wide_to_draw_stands_in_the_table():
    cell = {"n_requests": 10_000, "p99_estimable": True, "p99_low_ns": 5e5, "p99_high_ns": 1.07e8, "resolution_ns": 1.0}
    assert numbers.interval_text(cell, "p99", MILLISECONDS) == "[0.500, 107]"


def test_a_run_s_figures_and_pictures_agree_with_numpy(made_site):
    rate, content = received(made_site.data("hostile") / "200.js")
    assert rate == "200"
    requests = requests_at_200(made_site)
    assert {(run["variant"], run["run"]) for run in content["runs"]} == set(
        zip(requests["variant"], requests["run"], strict=True)
    )
    for run in content["runs"]:
        chosen = requests[(requests.variant == run["variant"]) & (requests.run == run["run"])]
        tested = chosen[chosen.phase == "test"]
        latency_ms = tested.latency_ns / 1e6
        assert run["requests"] == len(tested) == 300
        for name, share in (("p50", 50), ("p90", 90), ("p95", 95), ("max", 100)):
            assert run["figures"][name] == pytest.approx(np.percentile(latency_ms, share), rel=1e-5)
        # 300 requests leave 3 beyond the 99th percentile.
        assert set(run["figures"]) == {"mean", "min", "p50", "p90", "p95", "max"}
        assert run["success"] == pytest.approx((tested.code == 200).mean())
        assert np.array(run["points"]["latency_ns"]) / 1e6 == pytest.approx(latency_ms, rel=1e-5)
        assert run["points"]["failed"] == tested.seq[tested.code != 200].tolist()
        assert run["cdf"] == pytest.approx(np.quantile(latency_ms, content["shares"]), rel=1e-5)
        low, p99, high = run["histogram"]["edges"]
        counts, _ = np.histogram(latency_ms[latency_ms <= p99], 40, (low, p99))
        assert sum(run["histogram"]["linear"]) + run["histogram"]["beyond"] == 300
        assert np.abs(np.cumsum(counts) - np.cumsum(run["histogram"]["linear"])).max() <= 1
        assert sum(run["histogram"]["log"]) == 300 and high == pytest.approx(latency_ms.max(), rel=1e-5)
    excluded = [run["exclusion_reason"] for run in content["runs"] if (run["variant"], run["run"]) == ("plain", 2)]
    assert excluded == ["incomplete: 3 of <b>9</b> requests"]


def test_latency_over_time_leaves_out_what_statistics_leave_out_and_keeps_the_warm_up_apart(made_site):
    _, content = received(made_site.data("hostile") / "200.js")
    requests = requests_at_200(made_site)
    page = figures.read(made_site.page("hostile"))
    median, p90 = (page.rows(content["charts"]["time"], name) for name in ("p50", "p90"))
    assert all((row["start"] < 0) == (row["phase"] == "warmup") for row in median)
    for variant, runs in (("plain", [1]), (SCRIPT, [1, 2, 3])):
        chosen = requests[(requests.variant == variant) & np.isin(requests.run, runs) & (requests.phase == "test")]
        own = [place for place, row in enumerate(median) if (row["variant"], row["phase"]) == (variant, "test")]
        assert sum(median[place]["requests"] for place in own) == len(chosen)
        seconds = chosen.seq / 200
        inside = chosen.latency_ns[seconds < median[own[0]]["end"] - 1e-9] / 1e6
        assert median[own[0]]["value"] == pytest.approx(np.median(inside), rel=1e-5)
        assert p90[own[0]]["value"] == pytest.approx(np.percentile(inside, 90), rel=1e-5)


def test_a_long_run_is_binned(tmp_path):
    campaign = Campaign(tmp_path / "archive", "demo", "long", "2026-11-21T11:30:00+00:00")
    write(tmp_path / "tables", campaign, Made(["plain"], [1000.0], runs=1, requests=20_000))
    with querying(tmp_path / "tables", [campaign]) as queries:
        styles = [Style("plain", "Direct", "#0072B2")]
        content = rate_data.gather(queries, [1000.0], MILLISECONDS, run_findings.gather(queries), styles)[1000.0]
    (run,) = content["runs"]
    assert "points" not in run and len(run["bins"]) == rate_data.SEQUENCE_BINS
    assert run["bins"][0][0] == 0 and run["bins"][-1][1] == 19_999
    firsts, lasts = np.array(run["bins"])[:, 0], np.array(run["bins"])[:, 1]
    assert (firsts[1:] == lasts[:-1] + 1).all()
    assert max(bin_[6] for bin_ in run["bins"]) == run["figures"]["max"]
    assert {bin_[5] for bin_ in run["bins"]} == {None}, "of 134 requests"
    assert set(run["figures"]) >= {"p99", "p999"}
    assert content["needs"]["p99"] == 1000 and content["needs"]["p999"] == 10_000
    assert 0 < content["charts"]["time"]["n"] <= rate_data.TIME_BINS + 2
    assert len(as_json(content)) < 20_000


def test_a_page_of_27_rates_and_5_variants_is_under_2_mb(wide_site):
    page = wide_site.page("wide")
    own = [page, *(wide_site.reports / "assets").glob("site.*"), wide_site.reports / "assets" / "figures.js"]
    largest = max(path.stat().st_size for path in wide_site.data("wide").iterdir())
    assert len(list(wide_site.data("wide").glob("[0-9]*.js"))) == 27
    assert sum(path.stat().st_size for path in own) + largest < 2_000_000


def test_so_is_one_that_compares_as_many(wide_site):
    path = wide_site.reports / "comparisons/wide.html"
    page = Page(path)
    shown = page.json["page-data"]["charts"]
    n_effects, n_layers = (sum(rows["n"] for rows in shown[name].values()) for name in ("effects", "layers"))
    assert shown["latency"]["n"] == 27 * 5 and n_effects == n_layers == 27 * 4 * len(LATENCIES)
    assert path.stat().st_size < 2_000_000


def test_building_again_changes_no_file_and_removes_what_is_gone(made_site, tmp_path):
    campaign = made_site.campaigns["good"]
    reports = tmp_path / "reports"

    def build():
        write_assets(reports)
        site.build_campaign(campaign, made_site.tables, reports, VARIANTS, {})
        site.build_index([campaign], made_site.tables, reports, VARIANTS, {})
        return {path: path.stat().st_mtime_ns for path in reports.rglob("*") if path.is_file()}

    first = build()
    stale = [
        reports / "campaigns" / "gone.html",
        reports / "campaigns" / "gone" / "1.js",
        reports / "campaigns" / slug(campaign) / "7.js",
    ]
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text("Made by Loadstone" if path.suffix == ".html" else "loadstone.receive(1)")
    own = reports / "campaigns" / "my notes.html"
    own.write_text("what no site wrote stays")
    assert build() == first | {own: own.stat().st_mtime_ns}
    assert not any(path.name.endswith(".tmp") for path in first)


def test_only_the_data_of_rates_whose_requests_or_runs_changed_is_made_again(tmp_path, monkeypatch):
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    tables, gather, made = tmp_path / "tables", rate_data.gather, []
    monkeypatch.setattr(rate_data, "gather", lambda _, rates, *rest: made.extend(rates) or gather(_, rates, *rest))

    def build():
        made.clear()
        site.build_campaign(campaign, tables, tmp_path / "reports", VARIANTS, {})
        return list(made)

    write(tables, campaign, Made(["plain"], [10.0, 50.0], runs=2, requests=50))
    assert build() == [10.0, 50.0]
    assert build() == []
    of_fifty = next((tables / "requests").rglob("50_*.parquet"))
    os.utime(of_fifty, (1, 1))
    assert build() == []
    pq.write_table(pq.read_table(of_fifty)[:-1], of_fifty)
    assert build() == [50.0]
    write(tables, campaign, Made(["plain"], [10.0, 50.0], runs=2, requests=50, excluded=("plain", 2)))
    assert build() == [10.0, 50.0]
    assert build() == []


def test_the_data_of_rates_is_the_same_read_together_or_one_by_one(tmp_path, monkeypatch):
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    write(tmp_path / "tables", campaign, Made(["plain", "mesh"], [10.0, 50.0, 100.0], runs=2, requests=300))
    gather, read = rate_data.gather, []
    monkeypatch.setattr(rate_data, "gather", lambda _, rates, *rest: read.append(rates) or gather(_, rates, *rest))
    made = []
    for most in (500_000, 2 * 4 * 300, 1):
        monkeypatch.setattr(rate_data, "_REQUESTS", most)
        site.build_campaign(campaign, tmp_path / "tables", tmp_path / str(most), VARIANTS, {})
        made.append({path.name: path.read_bytes() for path in (tmp_path / str(most)).rglob("[0-9]*.js")})
    assert read == [[10.0, 50.0, 100.0], [10.0, 50.0], [100.0], [10.0], [50.0], [100.0]]
    assert len(made[0]) == 3 and made[0] == made[1] == made[2]


def test_the_shared_bundle_is_a_classic_script(made_site):
    text = (made_site.reports / "assets" / "vega.js").read_text("utf-8")
    assert not re.search(r"^\s*(import|export)\b", text, re.MULTILINE)
    assert "BSD-3-Clause" in text[:300]


def test_queries_are_files_with_a_header(made_site):
    for path in files("loadstone.sql").iterdir():
        if path.name.startswith("page_"):
            assert path.read_text("utf-8").startswith("-- "), path.name
            assert duckdb.extract_statements(path.read_text("utf-8"))


def test_figures_go_with_their_page(tmp_path):
    for page in ("kept", "gone"):
        folder = tmp_path / page
        folder.mkdir()
        for name in ("latency-p50.svg", "latency-p50.pdf", ".snakemake_timestamp"):
            (folder / name).touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    site_layout.remove_others(tmp_path, {"kept"}, are_figures=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "mine"]
    assert (tmp_path / "mine/notes.txt").exists() and len(list((tmp_path / "kept").iterdir())) == 3
