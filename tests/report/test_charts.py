"""The charts' specifications: complete, with units, and asking nothing of anyone."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import altair as alt
import pytest
import vl_convert
from loadstone.config.variants import Style, look
from loadstone.report import charts
from loadstone.report.charts import Load
from loadstone.report.numbers import MICROSECONDS, MILLISECONDS

STYLES = [Style("plain", "Direct", "#0072B2"), Style("<script>", "<script>", "#E69F00")]
CHARTS = (
    "latency",
    "success",
    "failed",
    "errors",
    "time",
    "cdf",
    "points",
    "bins",
    "histogram",
    "reported",
    "percentiles",
    "dumbbell",
    "effects-ratio",
    "effects-shift",
    "effects-errors",
    "layers",
    "heat",
    "curves",
)


@pytest.fixture(scope="module")
def specifications():
    return charts.specifications(STYLES, MILLISECONDS, Load((100.0, 300.0)))


def encodings(spec):
    yield spec.get("encoding", {})
    for layer in [*spec.get("layer", []), *([spec["spec"]] if "spec" in spec else [])]:
        yield from encodings(layer)


@pytest.mark.parametrize("name", CHARTS)
def test_vega_lite_accepts_each_chart(specifications, name):
    compiled = vl_convert.vegalite_to_vega({"data": {"name": "rows"}} | specifications[name])
    assert compiled["marks"]


def test_every_chart_of_every_page_is_as_vega_lites_schema_says(specifications):
    """Pages do not check it themselves."""
    every = {**specifications, "fit": charts.fit_specification(STYLES, "Users", "CPU (millicores)")}
    every |= {**charts.history_specifications(STYLES, MILLISECONDS), **charts.trace_specifications()}
    assert {"use-cpu", "use-time-memory", "history", "history-share", "shares"} < every.keys()
    for shared in ("config", "log_axis"):
        every.pop(shared)
    for chart in every.values():
        alt.Root.validate({"data": {"name": "rows"}} | chart)


@pytest.mark.parametrize("styles", [[], STYLES, [Style(f"\ue000{n}", f"\ue002{n}", *look(n)) for n in range(30)]])
def test_a_page_fills_in_what_altair_would_have_made_for_it(styles):
    loads, titles = Load((0.5, 300.0), "users"), ("Number of pods", "CPU (millicores)")
    made = charts.altair_specifications(styles, "µs", loads, titles)
    assert charts.specifications(styles, MICROSECONDS, loads) == made["page"]
    assert charts.history_specifications(styles, MICROSECONDS) == made["history"]
    assert charts.trace_specifications() == made["trace"]
    assert charts.fit_specification(styles, *titles) == made["fit"]["fit"]


def test_more_than_ten_loads_are_not_all_ticks():
    made = charts.specifications(STYLES, MICROSECONDS, Load(tuple(map(float, range(11)))))
    axes = [each["x"]["axis"] for each in encodings(made["latency"]) if "axis" in each.get("x", {})]
    assert axes and all("values" not in axis for axis in axes)


@pytest.mark.long
def test_charts_are_made_again_when_their_code_changed(tmp_path):
    """And not before; in a folder where nothing can be written they are made each time."""
    package = tmp_path / "loadstone"
    shutil.copytree(Path(charts.__file__).parents[2], package, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "from loadstone.report import charts; import sys; charts.trace_specifications(); print('altair' in sys.modules)"
    )

    def makes() -> bool:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return done.stdout == "True\n"

    assert makes() and not makes()
    with (package / "report/charts/run.py").open("a") as file:
        file.write("# changed\n")
    assert makes() and not makes()
    kept = package / "report/charts/__pycache__/specifications.json"
    for content in ("", "{}", "[]", kept.read_text()[:-100]):
        kept.write_text(content)
        assert makes() and not makes()
    kept.unlink()
    kept.mkdir()
    assert makes() and makes()


@pytest.mark.parametrize("name", CHARTS)
def test_every_axis_and_tooltip_of_a_latency_load_time_or_share_names_its_unit(specifications, name):
    measured = (
        "Latency",
        "Load",
        "Time",
        "Median",
        "Minimum",
        "Maximum",
        "99th",
        "Share",
        "Failed requests (",
        "From",
        "To",
    )
    titles = []
    for encoding in encodings(specifications[name]):
        titles += [encoding[axis]["title"] for axis in ("x", "y") if encoding.get(axis, {}).get("title")]
        titles += [tooltip["title"] for tooltip in encoding.get("tooltip", [])]
    assert titles
    for title in titles:
        if title.startswith(measured):
            assert title.endswith(("(ms)", "(s)", "(requests/s)", "(%)")), title


def test_the_load_of_users_is_called_so():
    text = json.dumps(charts.specifications(STYLES, MILLISECONDS, Load((3.0,), "users")))
    assert "Load (users)" in text and "requests/s" not in text


def test_a_line_s_chart_says_what_its_axes_are():
    made = charts.fit_specification(STYLES, "Number of pods", "CPU of nginx (millicores)")
    assert vl_convert.vegalite_to_vega({"data": {"name": "rows"}} | made)["marks"]
    titles = {" ".join(encoding[axis]["title"]) for encoding in encodings(made) for axis in "xy" if axis in encoding}
    assert titles == {"Number of pods", "CPU of nginx (millicores)"}


def test_a_long_title_of_a_line_s_axis_has_lines_that_fit():
    up = "CPU of shop/a-workload-with-a-long-name and all of its sidecars (millicores)"
    made = charts.fit_specification(STYLES, "Number of pods", up)
    (title,) = {tuple(encoding["y"]["title"]) for encoding in encodings(made) if "y" in encoding}
    assert "".join(title).replace(" ", "") == up.replace(" ", "") and len(title) == 3
    points = [{"kind": "run", "x": x, "value": x, "line": x, "low": x, "high": x} for x in (1, 2)]
    svg = vl_convert.vegalite_to_svg({**made, "width": 300, "datasets": {"rows": points, "labels": []}})
    # A letter of the widest usual font takes 0.65 of its size of 12 pixels.
    assert max(map(len, title)) * 12 * 0.65 < made["height"] + 24 and svg.count("<tspan") >= 3


def test_the_unit_follows_the_page():
    text = json.dumps(charts.specifications(STYLES, MICROSECONDS, Load((1.0,))), ensure_ascii=False)
    assert "Latency (µs)" in text and "(ms)" not in text


def test_a_variant_has_its_colour_in_every_chart(specifications):
    for name in ("latency", "success", "failed", "errors", "time"):
        scales = [encoding["color"]["scale"] for encoding in encodings(specifications[name]) if "color" in encoding]
        assert scales
        assert all(scale["domain"] == ["plain", "<script>"] for scale in scales)
        assert all(scale["range"] == ["var(--variant-0)", "var(--variant-1)"] for scale in scales)


def test_variants_of_one_colour_differ_by_dashes_and_shapes_and_few_variants_have_neither(specifications):
    many = [Style(f"v{place}", f"v{place}", *look(place)) for place in range(30)]
    made = charts.specifications(many, MILLISECONDS, Load((100.0,)))
    lines = ("latency", "success", "failed", "errors", "time", "percentiles", "curves", "use-cpu", "use-time-memory")
    for name in (*lines, "reported"):
        found = [encoding for encoding in encodings(made[name]) if {"shape", "strokeDash"} & encoding.keys()]
        for channel in ("shape", *(["strokeDash"] if name in lines else [])):
            scales = [encoding[channel]["scale"] for encoding in found if channel in encoding]
            assert scales and all(scale["domain"] == [style.name for style in many] for scale in scales), (
                name,
                channel,
            )
            kinds = [str(kind) for kind in scales[0]["range"]]
            assert len({(style.colour, kind) for style, kind in zip(many, kinds, strict=True)}) == 28  # 7 colours by 4
    latency = json.dumps(specifications["latency"])
    assert "strokeDash" not in latency.replace('"strokeDash": [5, 4]', "") and '"shape": {' not in latency


START_MS = 1_795_305_600_000  # 22 November 2026, 00:00 UTC


def drawn_through_time(rows, name="history"):
    made = charts.history_specifications(STYLES[:1], MILLISECONDS)
    rows = [{"kind": "point", "variant": "plain"} | row for row in rows]
    return vl_convert.vegalite_to_svg(
        {**made[name], "config": made["config"], "width": 1100, "datasets": {"rows": rows, "labels": []}}
    )


@pytest.mark.parametrize(("hours", "label"), [(3, "22 Nov 01:00"), (30, "22 Nov 18:00"), (9000, "2027")])
def test_times_of_day_have_24_hours_and_their_day(hours, label):
    svg = drawn_through_time({"at": START_MS + at * 3_600_000, "value": 1.0} for at in (0, hours))
    assert f">{label}<" in svg and not re.search(r">[0-9: ]+[AP]M<", svg)


def test_campaigns_minutes_apart_have_the_time_at_each_tick():
    svg = drawn_through_time({"at": START_MS + seconds * 1000, "value": 1.0} for seconds in (1618, 1761))
    told = re.findall(r">(22 Nov[^<]*)<", svg)
    assert "22 Nov 00:27:30" in told and "22 Nov 2026" not in told and len(told) == len(set(told))


def test_one_campaign_is_at_its_date():
    assert re.search(">22 Nov( 2026| 00:00:00)<", drawn_through_time([{"at": START_MS, "value": 1.0}]))


@pytest.mark.parametrize("name", ["history", "history-share"])
@pytest.mark.parametrize(
    "rows",
    [
        [{"value": 1.84, "low": 0.45, "high": 7.9}],  # a linear axis with room for notes would begin at -1.6
        [{"value": 0.0, "low": None, "high": None}, {"value": 10.0, "low": 8.0, "high": 12.0}],
        [{"value": 3.0, "low": None, "high": None}],
        [{"value": 103.0, "low": 101.0, "high": 104.0}, {"value": 104.0, "low": 103.0, "high": 106.0}],
    ],
)
def test_no_axis_through_time_goes_below_zero_or_hides_a_figure(rows, name):
    svg = drawn_through_time(({"at": START_MS + n * 10**8} | row for n, row in enumerate(rows)), name)
    assert re.search(r'text-anchor="end"[^>]*>[0-9]', svg) and "−" not in svg
    heights = [float(y) for y in re.findall(r'translate\([0-9.]+,([0-9.]+)\)" d="M[0-9.]+,0A', svg)]
    assert len(heights) == len(rows) and all(55 < y <= 320 for y in heights), "room above, none below the axis"


def test_the_name_of_the_warm_up_is_above_the_plot(specifications):
    rows = [
        {"variant": "plain", "phase": phase, "time": at, "start": at, "end": at + 1, "value": 1.0, "requests": 9}
        for phase, at in (("warmup", -1.0), ("test", 0.0), ("test", 1.0))
    ]
    spec = {**specifications["time"], "config": specifications["config"], "width": 400}
    svg = vl_convert.vegalite_to_svg({**spec, "datasets": {"rows": rows, "labels": []}})
    (height,) = re.findall(r'translate\([-0-9.]+,([-0-9.]+)\)"[^>]*>warm-up<', svg)
    assert float(height) < 0


def test_charts_name_no_address_and_no_stacked_bars(specifications):
    text = json.dumps(specifications)
    assert "http" not in text and "url" not in text
    assert '"stack"' not in text and '"bar"' not in text
