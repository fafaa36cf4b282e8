"""Verdicts, layers, knees and what weakens them, on the pages of a campaign and of a comparison, in a real browser."""

import csv
import json
import re
import shutil

import duckdb
import pytest
from loadstone.analysis import reasons
from loadstone.percentiles import SHOWN_PERCENTILES, STATISTICS, label
from loadstone.report import chart_rows, conclusions, figures
from report.concluded import ADDED, HOSTILE, LABEL, LATENCIES, VARIANTS, make
from report.printed import plain
from report.test_downloads import save

KINDS = ("campaign", "comparison")
PERCENTILES = {label(name): name for name in SHOWN_PERCENTILES}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder, and the page of each kind."""
    folder = tmp_path_factory.mktemp("concluded")
    return folder, dict(zip(KINDS, make(folder), strict=True))


def table(made, name, kind):
    """The rows of a table that the page of a kind is about."""
    files = made[0] / "tables" / name / ("layers.parquet" if kind == "comparison" else "app_dir=demo/*/*/*.parquet")
    with duckdb.connect() as connection:
        found = connection.execute("FROM read_parquet(?, hive_partitioning = false)", [str(files)])
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def rows(watched, figure):
    return watched.view(figure, "view.data('rows')")


def drawn(watched, figure):
    """The rows of a forest plot with what its specification adds to them."""
    every = "Object.keys(view._runtime.data).map((name) => view.data(name))"
    return watched.view(figure, f"{every}.find((rows) => rows[0] && rows[0].key !== undefined)")


def held(found):
    """The rows that a page holds, with what a reader chooses among as objects."""

    def of(column, place):
        if isinstance(column, dict):
            return {choice: of(each, place) for choice, each in column.items()}
        return column[place] if isinstance(column, list) else column

    return [{name: of(column, place) for name, column in found["columns"].items()} for place in range(found["n"])]


CELLS = [{"rate": 1000.0, "variant": "envoy", "load_model": "closed", "generator": "k6"}]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([(2, 47, "runs", 1000.0, "envoy")], "2 of 47 runs, Envoy at 1,000 users"),
        ([(4, 12, "cells", 1000.0, None)], "4 of 12 cells, at 1,000 users"),
        ([(1, 2, "cells", None, "envoy")], "1 of 2 cells, Envoy"),
        ([(9, 47, "runs", None, None)], "9 of 47 runs, in 1 cell"),
        ([(300, 300, "runs", None, None)], "all runs, in 1 cell"),
        ([(1, 2, "cells", None, None), (1, 2, "cells", None, None)], "1 of 2 cells; 1 more"),
    ],
)
def test_caveats_in_brief_say_how_many_runs_or_cells_they_concern(rows, text):
    names = "n", "n_of", "counted", "rate", "variant"
    about = {"claim": "unsettled", "weight": "serious", "text": "Some.", "remedy": "Do.", "cells": CELLS}
    claims = [about | dict(zip(names, row, strict=True)) for row in rows]
    everywhere = dict(zip(names, (2, 2, "cells", None, None), strict=True))
    claims.append(about | everywhere | {"claim": "few_runs", "weight": "note", "cells": CELLS * 2})
    groups = conclusions.claims_by_weight(claims, {"envoy": "Envoy"}.get)
    incident = ("3 incidents", "incidents")
    lettered = {claim: {"letter": letter} for claim, letter in (("unsettled", "a"), ("few_runs", "b"))}
    serious, limits, notes = conclusions.caveats_in_brief(groups, [incident], lettered)
    assert serious == ("serious", [("Unsteady runs", "claim-unsettled", text, "a")])
    assert limits == ("limits", [(*incident, "", "")])
    assert [row[-1] for row in notes[1]] == [""]  # a note marks no verdict


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_comes_first_and_what_weakens_it_before_how_to_reproduce_it(made, watched, kind):
    watched.open(made[1][kind].as_uri())
    page = watched.page
    heads = [plain(head) for head in page.locator("main h2").all_inner_texts()]
    assert heads[0].startswith(f"{LABEL} adds ") and heads[0].endswith("at 200 requests/s.")
    assert heads.index("Caveats") < heads.index("How to reproduce this page")
    page.locator("section[aria-labelledby=verdict] summary", has_text="In sentences").click()
    said = plain(page.locator("section[aria-labelledby=verdict]").inner_text())
    assert "Mesh is slower than Direct at 100, 200 and 400 requests/s" in said
    assert f"{LABEL} is slower than Direct" in said
    assert "Direct, again is equivalent within 5 % to Direct" in said
    assert "inconclusive at 50 requests/s." in said and "are needed" not in said
    reasons = page.locator("#effects-table td:last-child").all_text_contents()
    assert any(reason.startswith("the runs vary too much") for reason in reasons)
    page.locator("section[aria-labelledby=verdict] a", has_text="All figures, intervals and reasons").click()
    assert page.url.endswith("#relative-to-baseline")
    told = table(made, "effects", kind)
    tested = [row for row in told if row["p_adjusted"] is not None]
    n_tested = f"{len(tested)} of {len(told)} verdicts tested"
    assert f"{n_tested} at 95 % confidence, corrected for multiple comparisons" in said
    page.locator("section[aria-labelledby=verdict] a", has_text="How verdicts are computed").focus()
    assert page.evaluate("document.activeElement.getAttribute('href')") == "../methods.html#comparison"


@pytest.mark.parametrize("kind", KINDS)
def test_the_forest_is_the_table_of_effects(made, watched, kind):
    watched.open(made[1][kind].as_uri())
    page = watched.page
    known = {(row["variant"], row["rate"], row["statistic"]): row for row in table(made, "effects", kind)}
    for name, statistic in PERCENTILES.items():
        watched.do(page.get_by_role("radio", name=name, exact=True).first.check)
        for shown, column, length in (("Ratio", "ratio", 1), ("Shift", "shift", 1e6)):
            watched.do(page.get_by_role("radio", name=shown, exact=True).check)
            drawn = rows(watched, "effects")
            assert len(drawn) == 16
            for row in drawn:
                told = known[row["variant"], row["load"], statistic]
                assert row["verdict"] == told["verdict"] and row["needed"] == told["runs_needed"]
                for field, name_of in (("value", column), ("low", f"{column}_low"), ("high", f"{column}_high")):
                    assert row[field] == pytest.approx(told[name_of] / length, rel=1e-4), (row["label"], field)
                assert row["margin_low"] < (1 if column == "ratio" else 0) < row["margin_high"]
    assert {row["verdict"] for row in drawn} == {"slower", "inconclusive"}


def test_a_verdict_is_told_by_words_and_shapes_and_the_margin_is_drawn(made, watched):
    watched.open(made[1]["comparison"].as_uri())
    how = watched.page.locator("#effects .how")
    how.locator("summary").click()
    assert "verdicts are corrected for all figures of the page" in how.inner_text()
    svg = watched.page.locator("#effects .plot svg")
    drawn = rows(watched, "effects")
    said = [row["verdict"] for row in drawn]
    texts = svg.locator("g.mark-text.role-mark text").all_text_contents()
    assert texts == said and {"slower", "equivalent", "inconclusive"} == set(said)
    points = svg.locator("g.mark-symbol.role-mark path").evaluate_all(
        "all => all.map((e) => [e.getAttribute('d'), e.getAttribute('fill')])"
    )
    by_verdict = {}
    for row, (shape, fill) in zip(drawn, points, strict=True):
        by_verdict.setdefault(row["verdict"], set()).add(shape)
        assert (fill == "var(--paper)") == (row["verdict"] == "inconclusive")
    assert all(len(shapes) == 1 for shapes in by_verdict.values())
    assert len(set.union(*by_verdict.values())) == 3
    assert svg.locator("g.mark-rect.role-mark path").count() == len(drawn)
    # Hollow points tell what it would take, where more runs would help.
    needs = {row["needs"] for row in drawn if row["verdict"] == "inconclusive"}
    assert any(re.fullmatch(r"[0-9,]+ of each variant", text) for text in needs)
    # The hovered point says so to its reader.
    place = next(number for number, row in enumerate(drawn) if row["needed"])
    svg.locator("g.mark-symbol.role-mark path").nth(place).hover()
    tip = watched.page.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    assert drawn[place]["needs"] in tip.inner_text() and "inconclusive" in tip.inner_text()


def test_what_is_chosen_is_in_the_address(made, watched):
    page = watched.page
    watched.open(made[1]["comparison"].as_uri())
    watched.do(page.get_by_role("radio", name="Shift", exact=True).check)
    watched.do(lambda: page.locator("select[name=at]").select_option("100"))
    watched.do(page.get_by_role("checkbox", name="Mesh", exact=True).uncheck)
    chosen = rows(watched, "effects")
    assert {row["load"] for row in chosen} == {100} and "mesh" not in {row["variant"] for row in chosen}
    assert "mesh" not in {row["variant"] for row in rows(watched, "layers")}
    address = page.url
    assert "effect=shift" in address and "at=100" in address
    watched.open("about:blank")
    watched.open(address)
    assert rows(watched, "effects") == chosen
    assert page.locator("select[name=at]").input_value() == "100"
    page.go_back()
    watched.open(made[1]["comparison"].as_uri() + "#effect=nonsense&at=7")
    assert len(rows(watched, "effects")) == 16 and watched.complaints == []


def test_a_verdict_links_to_what_strikes_it(made, watched):
    watched.open(made[1]["campaign"].as_uri())
    watched.page.locator("section[aria-labelledby=verdict] summary", has_text="In sentences").click()
    marks = watched.page.locator(".verdicts .caveats")
    assert list(map(plain, marks.all_inner_texts())) == ["Caveats: unsteady runs at 400 requests/s."]
    told = [
        row for row in table(made, "claims", "campaign") if (row["claim"], row["weight"]) == ("unsettled", "serious")
    ]
    struck = {"rate": 400.0, "variant": "filter", "load_model": "open", "generator": "vegeta"}
    assert [row["cells"] for row in told] == [[struck]]
    watched.page.locator("#claim-unsettled").wait_for()
    assert marks.locator("a").get_attribute("href") == "#claim-unsettled"


def test_the_forest_of_failures_is_the_table_of_effects(wide_site, watched):
    watched.open(wide_site.page("wide").as_uri())
    drawn = rows(watched, "effects-errors")
    with duckdb.connect() as connection:
        told = connection.execute(
            "SELECT rate, variant, 100 * shift, 100 * shift_low, 100 * shift_high, verdict FROM read_parquet(?) "
            "WHERE statistic = 'error_fraction' ORDER BY ALL",
            [str(wide_site.tables / "effects/app_dir=demo/*/*/*.parquet")],
        ).fetchall()
    names = ("load", "variant", "value", "low", "high", "verdict")
    assert len(drawn) == len(told) == 27 * 4
    for row, known in zip(sorted(drawn, key=lambda row: (row["load"], row["variant"])), told, strict=True):
        exact = [each if isinstance(each, str) else pytest.approx(each, rel=1e-3) for each in known]
        assert [row[name] for name in names] == exact
    points = watched.page.locator("#effects-errors .plot svg g.mark-symbol.role-mark path")
    assert points.count() == len(drawn)
    watched.do(lambda: watched.page.locator("select[name=at]").select_option("100"))
    watched.do(watched.page.get_by_role("checkbox", name="variant-b", exact=True).uncheck)
    assert [row["variant"] for row in rows(watched, "effects-errors")] == ["variant-c", "variant-d", "variant-e"]
    assert {row["load"] for row in rows(watched, "effects-errors")} == {100} and watched.complaints == []


def test_where_nothing_failed_the_forest_of_failures_says_so(wide_site, watched, tmp_path):
    shutil.copytree(wide_site.reports, tmp_path / "site")
    path = tmp_path / "site/campaigns" / wide_site.page("wide").name

    def change(found):
        data = json.loads(found[2])
        every = held(data["charts"]["effects-errors"])
        for row in every:
            if data["variants"][row["variant"]]["name"] == "variant-b":
                row |= {"verdict": None, "shown": "none failed", "value": 0.0, "low": None, "high": None}
        data["charts"]["effects-errors"] = chart_rows.columns(every)
        return found[1] + json.dumps(data).replace("<", "\\u003c") + found[3]

    page = r'(<script type="application/json" id="page-data">)(.*?)(</script>)'
    path.write_text(re.sub(page, change, path.read_text(), flags=re.DOTALL))
    watched.open(path.as_uri())
    drawn = [row["shown"] for row in rows(watched, "effects-errors") if row["variant"] == "variant-b"]
    assert set(drawn) == {"none failed"}
    assert "none failed at 27 of 27 loads" in watched.page.locator("#effects-errors .summary").text_content()


def test_what_a_picture_cuts_ends_in_an_arrow_and_what_has_no_interval_is_small(made, watched):
    path = made[0] / "cut" / "campaigns" / made[1]["campaign"].name
    shutil.copytree(made[0] / "reports", made[0] / "cut")
    ends = {"mesh": (1.4, 0.001, 1.5), "same": (1.0, None, None)}

    def change(found):
        data = json.loads(found[2])
        every = held(data["charts"]["effects"]["p50"])
        for row in every:
            name = data["variants"][row["variant"]]["name"]
            if row["load"] == 100 and name in ends:
                for field, value in zip(("value", "low", "high"), ends[name], strict=True):
                    row[field]["ratio"] = value
        data["charts"]["effects"]["p50"] = chart_rows.columns(every)
        return found[1] + json.dumps(data).replace("<", "\\u003c") + found[3]

    page = r'(<script type="application/json" id="page-data">)(.*?)(</script>)'
    path.write_text(re.sub(page, change, path.read_text(), flags=re.DOTALL))
    watched.open(path.as_uri())
    (cut,) = [row for row in drawn(watched, "effects") if row["cut_low"] is not None or row["cut_high"] is not None]
    assert (cut["load"], cut["variant"], cut["cut_low"], cut["cut_high"]) == (100, "mesh", cut["start"], None)
    assert cut["low"] == 0.001 < cut["start"] and cut["end"] == cut["high"] == 1.5
    assert "Arrow: the interval extends" in watched.page.locator("#effects .note").inner_text()
    marks = watched.page.locator("#effects .plot svg g.mark-symbol.role-mark")
    assert marks.nth(0).locator("path").count() == 1  # the arrow, below all points
    widths = marks.last.locator("path").evaluate_all("all => all.map((each) => each.getBBox().width)")
    bare = [number for number, row in enumerate(rows(watched, "effects")) if row["low"] is None]
    assert len(bare) == 1 and widths[bare[0]] < min(widths[: bare[0]] + widths[bare[0] + 1 :])
    watched.do(watched.page.get_by_role("checkbox", name="Mesh", exact=True).uncheck)
    assert "Arrow" not in watched.page.locator("#effects .note").inner_text()


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_in_the_order_of_the_lattice_and_warn_in_words(made, watched, kind):
    watched.open(made[1][kind].as_uri())
    shown = drawn(watched, "layers")
    steps = ["Mesh over Direct", "Filter over Mesh", f"{LABEL} over Filter"]
    assert [row["label"] for row in shown] == steps * 4
    assert [row["load"] for row in shown] == [rate for rate in (50, 100, 200, 400) for _ in steps]
    known = {(row["variant"], row["rate"], row["statistic"]): row for row in table(made, "layers", kind)}
    for row in shown:
        told = known[row["variant"], row["load"], "p50"]
        assert row["value"] == pytest.approx(told["added_ns"] / 1e6, rel=1e-4)
        assert row["low"] == pytest.approx(told["added_low_ns"] / 1e6, rel=1e-4)
        # What grows as long as the attack lasts would press all others flat.
        assert (row["point"] is None) == (row["load"] == 400 and row["label"] != steps[0])
    section = watched.page.locator("section[aria-labelledby=layer-by-layer]").inner_text()
    assert f"Filter over Mesh, {LABEL} over Filter: Filter is beyond its saturation point" in section
    assert "Are the overheads additive?" not in section  # without a square there is nothing to say
    assert "A row without a point is far beyond the others" in section
    watched.do(lambda: watched.page.locator("select[name=at]").select_option("400"))
    assert "stack" not in str(watched.page.locator("#chart-specs").text_content())


@pytest.mark.parametrize("kind", KINDS)
def test_knees_are_in_a_table_and_in_the_picture_across_load(made, watched, kind):
    watched.open(made[1][kind].as_uri())
    (told,) = [row for row in table(made, "knees", kind) if row["knee_rate"]]
    assert (told["variant"], told["beyond"]) == ("filter", [400.0])
    (knee,) = watched.view("latency", "view.data('knees')")
    assert (knee["variant"], knee["low"], knee["high"]) == ("filter", 200, 400)
    assert knee["knee"] == told["knee_rate"]
    assert {(row["variant"], row["load"]) for row in rows(watched, "latency") if row["beyond"]} == {("filter", 400)}
    assert watched.page.locator("#latency g.mark-rect.role-mark path").count() == 1
    cells = watched.page.locator("#knees-table tbody tr", has_text="Filter").first.locator("td").all_inner_texts()
    assert plain(cells[1]) == "[200, 400]" and cells[2] == "throughput" and cells[4] == "400"
    watched.do(watched.page.get_by_role("checkbox", name="Filter", exact=True).uncheck)
    assert watched.view("latency", "view.data('knees')") == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_weakens_it_is_told_the_serious_first_each_with_its_remedy(made, watched, kind):
    watched.open(made[1][kind].as_uri())
    section = watched.page.locator("section[aria-labelledby=claims]")
    told = table(made, "claims", kind)
    weights = [head.split(":")[0].lower() for head in section.locator("h3").all_inner_texts()]
    assert weights == list(dict.fromkeys(row["weight"] for row in told)) and weights[0] == "serious"
    text = plain(section.inner_text())
    labels = {name: style["label"] for name, style in VARIANTS.declared["demo"].items()}
    for row in told:
        assert reasons.renamed(row["text"], lambda name: labels.get(name, name)) in text and row["remedy"] in text
        assert "“" not in text
    assert section.locator("dd").count() == section.locator("dd >> text=Remedy:").count()


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_all_verdicts_has_every_row(made, watched, kind):
    watched.open(made[1][kind].as_uri())
    found = watched.page.locator("#effects-table tbody tr")
    told = table(made, "effects", kind)
    assert found.count() == len(told) == 4 * 4 * len(STATISTICS)
    assert found.locator("td:nth-child(4)").all_text_contents().count("–") == sum(not row["verdict"] for row in told)


def test_data_of_the_forest_are_whole(made, watched, tmp_path):
    watched.open(made[1]["comparison"].as_uri())
    with save(watched, "effects", "CSV", tmp_path).open(encoding="utf-8", newline="") as file:
        saved = list(csv.DictReader(file))
    drawn = rows(watched, "effects")
    assert [float(row["Low (ratio)"]) for row in saved] == [row["low"] for row in drawn]
    needed = ["" if row["needed"] is None else str(row["needed"]) for row in drawn]
    assert [row["Runs needed per variant"] for row in saved] == needed
    assert [row["Verdict"] for row in saved] == [row["shown"] for row in drawn]
    assert {row["Variant"] for row in saved} >= {LABEL}
    assert "<script" not in save(watched, "effects", "SVG", tmp_path).read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_figures_for_papers_are_the_same(made, watched, tmp_path, kind):
    page = figures.read(made[1][kind])
    watched.open(made[1][kind].as_uri())
    shown = {figure.name: figure for figure in figures.all_figures(page, ())}
    assert {f"effects-{part}-{name}" for part in ("ratio", "shift") for name in LATENCIES} <= shown.keys()
    for name, figure in (("effects-ratio-p50", "effects"), ("layers-p50", "layers")):
        texts = {"why", "warning", "p"}
        for mine, theirs in zip(shown[name].rows, rows(watched, figure), strict=True):
            assert {field: mine[field] for field in mine.keys() - texts}.items() <= theirs.items()
    folder = tmp_path / "out"
    figures.build(made[1][kind], folder, {"width": "8.5cm", "formats": ["svg"]})
    for name in ("effects-ratio-p50", "effects-shift-p99", "layers-mean", "latency-p50"):
        svg = (folder / f"{name}.svg").read_text()
        assert "var(--" not in svg and "<script" not in svg
    heights = [
        float(re.search(r' height="([0-9.]+)cm"', (folder / f"{name}.svg").read_text())[1])
        for name in ("effects-ratio-p50", "latency-p50")
    ]
    assert heights[0] > heights[1]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_quiet_ask_nobody_and_show_names_as_text(made, watched, kind):
    for width in (1400, 400):
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.open(made[1][kind].as_uri())
        watched.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert HOSTILE in ADDED and watched.page.locator("main b, main script").count() == 0
    assert watched.complaints == []
    assert all(address.startswith((made[0].as_uri(), "data:,")) for address in watched.requests)


@pytest.mark.parametrize("kind", KINDS)
def test_a_printed_page_is_light_and_as_wide_as_paper(made, watched, kind):
    watched.page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins
    watched.page.emulate_media(media="print", color_scheme="dark")
    watched.open(made[1][kind].as_uri())
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 718
    assert watched.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert watched.page.locator("header.site, .controls, button").locator("visible=true").count() == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(made, watched, kind):
    found = {}
    for width, scheme in ((1400, "light"), (400, "dark")):
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.page.emulate_media(color_scheme=scheme)
        watched.open(made[1][kind].as_uri())
        found |= {(width, scheme, rule): nodes for rule, nodes in watched.violations().items()}
    assert found == {}
