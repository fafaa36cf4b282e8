"""What a reader saves of a chart: real files, read back and compared with what the page shows."""

import base64
import csv
import json
import re
import xml.etree.ElementTree as ET

import altair as alt
import duckdb
import pyarrow.parquet as pq
import pytest
import vl_convert
from loadstone.report import figures
from report.conftest import ENDING, SCRIPT

SVG = "{http://www.w3.org/2000/svg}"


def save(watched, figure, form, folder, ending=None):
    """The file that a figure's button gives."""
    details = watched.page.locator(f"#{figure} .data")
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    with watched.page.expect_download() as waiting:
        details.get_by_role("button", name=form, exact=True).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert waiting.value.suggested_filename.endswith(f"-{figure}.{ending or form.lower()}")
    watched.page.locator(f"#{figure} .saved", has_text=f"Saved as {form.upper()}.").wait_for()
    return path


def table(watched, figure):
    """Heading and cells of a figure's table."""
    found = watched.page.locator(f"#{figure} .scroll table")
    head = found.locator("thead th").all_inner_texts()
    return head, found.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(c => c.textContent.replaceAll('\u00a0', ' ')))"
    )


def shown(value):
    """A value of a file as text, and as a number where it is one."""
    return "" if value is None else value


@pytest.mark.parametrize("figure", ["latency", "failed", "time-p50", "sequence", "cdf", "histogram"])
def test_data_are_those_of_the_table_and_the_picture(made_site, watched, tmp_path, figure):
    watched.open(made_site.page("hostile").as_uri())
    saved_csv, saved_parquet = (save(watched, figure, form, tmp_path) for form in ("CSV", "Parquet"))
    head, cells = table(watched, figure)
    with saved_csv.open(encoding="utf-8", newline="") as file:
        names, *rows = list(csv.reader(file))
    parquet = pq.read_table(saved_parquet)
    assert names[: len(head)] == head and parquet.column_names == names
    assert len(rows) == len(cells) == parquet.num_rows > 3
    # The two files hold the same, to the last digit and the last odd character.
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        for text, value in zip(column, parquet[name].to_pylist(), strict=True):
            if isinstance(value, bool):
                assert text == str(value).lower()
            elif isinstance(value, float):
                assert float(text) == value
            else:
                assert text == shown(value)
    # The table has the same as people read it.
    for row, read in zip(rows, cells, strict=True):
        for text, cell in zip(row, read, strict=False):
            try:
                number = float(cell.replace(",", "").replace("−", "-"))
            except ValueError:
                assert cell in (text, "–", "failed", "successful") or "over" in cell
            else:
                assert float(text) == pytest.approx(number, rel=0.01, abs=0.006)
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{saved_parquet}')").fetchall() == [(len(rows),)]
    assert watched.complaints == []


def test_an_interval_that_is_cut_in_the_picture_is_whole_in_the_data(made_site, watched, tmp_path):
    watched.open(made_site.page("good").as_uri())
    page = figures.read(made_site.page("good"))
    saved = pq.read_table(save(watched, "latency", "Parquet", tmp_path)).to_pylist()
    labels = {"Direct": "plain", "Envoy": "envoy"}
    found = {(labels[row["Variant"]], row["Load (requests/s)"]): row for row in saved if row["Run"] == "all"}
    for cell in page.rows(page.charts["latency"], "p50"):
        row = found[cell["variant"], cell["load"]]
        assert (row["Latency (ms)"], row["Low (ms)"], row["High (ms)"]) == (cell["value"], cell["low"], cell["high"])
        assert row["Estimable"] is cell["estimable"]


def test_data_follow_what_is_shown(made_site, watched, tmp_path):
    watched.open(f"{made_site.page('hostile').as_uri()}#stat=p99&hide=plain")
    rows = pq.read_table(save(watched, "latency", "Parquet", tmp_path)).to_pylist()
    assert {row["Variant"] for row in rows} == {SCRIPT, ENDING}
    assert [row["Latency (ms)"] for row in rows] == watched.view("latency", "view.data('rows').map(row => row.value)")


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_stands_alone(made_site, watched, tmp_path, width, scheme):
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.open(made_site.page("hostile").as_uri())
    root = ET.parse(save(watched, "latency", "SVG", tmp_path)).getroot()
    text = ET.tostring(root, encoding="unicode")
    assert "var(" not in text and "light-dark" not in text and "http" not in text.replace("http://www.w3.org", "")
    assert root.find(f"{SVG}title").text == "Latency of all requests"
    assert "at 10 requests/s" in root.find(f"{SVG}desc").text
    assert root.find(f"{SVG}rect").get("fill") == "#ffffff"
    # On a phone too: as wide as anywhere, names beside the lines, dark ink.
    names = {element.text for element in root.iter(f"{SVG}text")}
    assert "plain" in names and any(name and name.startswith("<script>") for name in names)
    assert float(root.get("width")) > 700
    assert "rgb(27, 31, 35)" in text and not list(root.iter(f"{SVG}script"))


def test_a_png_is_a_picture_with_something_in_it(made_site, watched, tmp_path):
    watched.open(made_site.page("good").as_uri())
    path = save(watched, "latency", "PNG", tmp_path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[start : start + 4]) for start in (16, 20))
    assert width > 1400 and height > 500 and len(content) > 10_000
    # What it shows: white paper, and each variant's colour on it.
    blank = watched.page.context.new_page()
    found = blank.evaluate(
        """async (text) => { const image = new Image();
        image.src = `data:image/png;base64,${text}`; await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.width, image.height), counts = {};
        for (let at = 0; at < data.length; at += 4) {
          const colour = `${data[at]},${data[at + 1]},${data[at + 2]},${data[at + 3]}`;
          counts[colour] = (counts[colour] || 0) + 1;
        }
        return counts; }""",
        base64.b64encode(content).decode(),
    )
    assert found["255,255,255,255"] > 0.5 * width * height
    assert found["0,114,178,255"] > 500 and found["230,159,0,255"] > 500  # #0072B2 and #E69F00
    assert watched.complaints == []


def written(svg: str) -> set[str]:
    """The texts of a drawing."""
    return {"".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")} - {""}


@pytest.fixture(
    params=[
        ("hostile", "latency", "stat=p90&axes=log"),
        ("hostile", "time-p50", ""),
        ("hostile", "heat", ""),
        ("hostile", "curves", "hide=plain"),
        ("hostile", "sequence", ""),
        ("wide", "effects", "effect=shift&at=20"),
        ("wide", "layers", "at=20"),
    ],
    ids=lambda each: each[1],
)
def shown_figure(request, made_site, wide_site) -> tuple[str, str]:
    """A figure's id, and the address of its page with choices."""
    page, figure, choices = request.param
    site = wide_site if page == "wide" else made_site
    return figure, f"{site.page(page).as_uri()}#{choices}"


def test_a_saved_specification_draws_what_the_page_shows(shown_figure, watched, tmp_path):
    """Drawn by vl-convert, which knows nothing of the page: its data, texts, colours and number of marks."""
    figure, address = shown_figure
    watched.open(address)
    path = save(watched, figure, "Vega-Lite", tmp_path, "vl.json")
    text, ours = path.read_text(encoding="utf-8"), save(watched, figure, "SVG", tmp_path).read_text(encoding="utf-8")
    spec = json.loads(text)
    assert spec["$schema"].rpartition("/")[2] == f"{alt.SCHEMA_VERSION.partition('.')[0]}.json"
    assert watched.page.locator(f"#{figure} h3, #{figure} h4").first.inner_text() in spec["description"]
    assert "var(" not in text and "light-dark" not in text and "usermeta" not in spec
    alt.Root.validate(spec)
    shown = watched.view(figure, "view.data('rows')")
    assert len(spec["datasets"]["rows"]) == len(shown) > 0
    assert all(row.items() <= drawn.items() for row, drawn in zip(spec["datasets"]["rows"], shown, strict=True))
    theirs = vl_convert.vegalite_to_svg(spec)
    assert written(theirs) == written(ours)
    for mark in ("<path", "<line", "<rect"):
        assert abs(theirs.count(mark) - ours.count(mark)) <= 2, mark  # the paper, and its border
    colours = set(re.findall(r'fill="(#[0-9a-f]{6}|rgb[^"]*)"', theirs)) - {"#ffffff"}
    assert colours == set(re.findall(r'fill="(#[0-9a-f]{6}|rgb[^"]*)"', ours)) - {"#ffffff"}
    assert vl_convert.vegalite_to_png(spec).startswith(b"\x89PNG")
    assert watched.complaints == []


def numbers_of(path):
    """The columns of a saved file that are numbers, and those that are text."""
    saved = pq.read_table(path)
    texts = {name: set(saved[name].to_pylist()) for name in saved.column_names if saved[name].type == "string"}
    assert not any("–" in values for values in texts.values()), texts
    return set(saved.column_names) - set(texts), saved.to_pylist()


@pytest.mark.parametrize(("unit", "value"), [("ratio", "Ratio"), ("ms", "Shift (ms)")])
def test_conclusions_are_numbers_with_their_unit(wide_site, watched, tmp_path, unit, value):
    choice = value.split()[0].lower()
    watched.open(f"{(wide_site.reports / 'comparisons/wide.html').as_uri()}#effect={choice}&stat=p50")
    numbers, rows = numbers_of(save(watched, "effects", "Parquet", tmp_path))
    runs = {"Runs needed per variant", "Runs", "Runs of the baseline", "Pairs", "Load (requests/s)"}
    assert numbers == {value, f"Low ({unit})", f"High ({unit})", "p, adjusted", *runs}
    assert {row["p, adjusted"] for row in rows} == {0.12346}
    if choice == "shift":
        percent = {f"{name} (percentage points)" for name in ("Shift", "Low", "High")}
        assert numbers_of(save(watched, "effects-errors", "Parquet", tmp_path))[0] == {*percent, "p, adjusted", *runs}
        added = {"Added (ms)", "Low (ms)", "High (ms)", "Runs", "Load (requests/s)"}
        assert numbers_of(save(watched, "layers", "Parquet", tmp_path))[0] == added
    assert watched.complaints == []


def test_latencies_of_all_requests_are_numbers_and_what_is_missing_is_nothing(made_site, watched, tmp_path):
    watched.open(made_site.page("hostile").as_uri())
    for figure, value in (("heat", "Latency (ms)"), ("curves", "Latency at most (ms)")):
        numbers, rows = numbers_of(save(watched, figure, "Parquet", tmp_path))
        assert {value, "Is a lower bound"} <= numbers and not any("as a number" in name for name in numbers)
        drawn = watched.view(figure, "view.data('rows').map((row) => row.value)")
        assert [row[value] for row in rows][: len(drawn)] == drawn
        if figure == "heat":
            assert None in drawn, "bins of too few requests"
    with save(watched, "heat", "CSV", tmp_path).open(encoding="utf-8", newline="") as file:
        written = [row["Latency (ms)"] for row in csv.DictReader(file)]
    assert "" in written and all(float(text) > 0 for text in written if text)


def test_figures_of_which_none_is_known_are_numbers_too(made_site, watched, tmp_path):
    """No interval of any p99 of 300 requests: the columns have the type that other files give them."""
    watched.open(f"{made_site.page('hostile').as_uri()}#stat=p99")
    saved = pq.read_table(save(watched, "success", "Parquet", tmp_path))
    for name in ("Low (ms)", "High (ms)"):
        assert saved[name].null_count == saved.num_rows > 0 and saved[name].type == "double"
