"""The first screen of a page: the largest finding, the matrix of verdicts, the main chart; and tables to take along."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loadstone import archive
from loadstone.report.figures import build_summary
from report.concluded import LABEL, VARIANTS, make
from report.printed import plain


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> tuple[Path, Path]:
    return make(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Path:
    """The page of a campaign with resource usage, as the demo's."""
    return make(tmp_path_factory.mktemp("used"), rates=(100, 200, 400), sampled=True)[0]


@pytest.fixture(params=[0, 1], ids=["campaign", "comparison"])
def page(request, pages) -> Path:
    return pages[request.param]


def data_of(page: Path) -> dict:
    return json.loads(re.search(r'id="page-data">(.*?)</script>', page.read_text(), re.DOTALL)[1])


def test_the_answer_and_the_main_chart_are_on_the_first_screen(watched, page):
    watched.open(page.as_uri())
    heading = plain(watched.page.locator("#verdict").inner_text())
    assert heading.startswith(f"{LABEL} adds ") and heading.endswith("at 200 requests/s.")
    largest = "The largest of 4 differences at the highest load clearly below saturation."
    assert watched.page.locator(".conclusion .brief").inner_text() == largest
    assert watched.page.locator("#verdict-matrix").bounding_box()["y"] < 450
    assert watched.page.locator("#verdict-matrix tbody tr").count() == 1 + 4
    titles = watched.page.locator("main h2").all_inner_texts()
    assert titles.index("Latency across load") == 1
    assert not watched.complaints


@pytest.mark.parametrize("width", [1400, 400])
def test_the_answer_comes_before_its_caveats_and_their_number_is_beside_it(watched, page, width):
    """Each caveat is one line that leads to its details, the most serious first."""
    watched.page.set_viewport_size({"width": width, "height": 900 if width > 400 else 850})
    watched.open(page.as_uri())
    badge = watched.page.locator(".conclusion .badge")
    found = watched.page.locator("#caveats li")
    serious = watched.page.locator("#caveats li.serious")
    number = f"{serious.count()} serious caveat{'s' if serious.count() > 1 else ''}"
    more = ", the most important" if serious.count() > 2 else ""
    texts = [each.inner_text().partition("Serious: ") for each in serious.all()[:2]]
    parts = [(*text.partition(": ")[::2], mark.strip()) for mark, _, text in texts]
    shown = [f"{name.lower()}{mark} ({extent})" if extent else f"{name.lower()}{mark}" for name, extent, mark in parts]
    assert any(mark for *_, mark in parts)
    assert badge.inner_text() == f"{number}{more}: {', '.join(shown)}"
    assert badge.get_attribute("href") == "#caveats"
    badge.click()
    controls, list_of = (watched.page.locator(each).first.bounding_box() for each in (".sticky", "#caveats"))
    assert list_of["y"] >= controls["y"] + controls["height"]
    watched.page.evaluate("scrollTo(0, 0)")
    assert badge.bounding_box()["y"] < watched.page.locator("#verdict-matrix").bounding_box()["y"] < 850
    assert found.first.bounding_box()["y"] > watched.page.locator("#verdict-matrix tbody tr").last.bounding_box()["y"]
    weights = [each.get_attribute("class") or "note" for each in found.all()]
    assert weights == sorted(weights, key=["serious", "limits", "note"].index)
    for link in watched.page.locator("#caveats a").all():
        assert watched.page.locator(link.get_attribute("href")).count() == 1
    if width > 400:
        assert all(each.bounding_box()["height"] < 56 for each in found.all())
        assert not watched.page.locator(".notice:visible").count()


def test_printed_it_is_two_to_four_pages_with_the_answer_on_the_first(watched, used, tmp_path):
    watched.open(used.as_uri())
    pdf = tmp_path / "page.pdf"
    watched.page.pdf(path=pdf, format="A4", margin=dict.fromkeys(("top", "right", "bottom", "left"), "12mm"))
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())) <= 4
    watched.page.emulate_media(media="print")
    hidden = "section:has(#inspector), section:has(#heat-map), .controls, .files, button, [id^=use-time]"
    assert watched.page.locator(hidden).count() > 5
    assert not [each for each in watched.page.locator(hidden).all() if each.is_visible()]
    for seen in ("#verdict-matrix", "#claims", "#use-cpu", "#measured", "#reproduce"):
        assert watched.page.locator(seen).is_visible()
    # Facts are a paragraph, and charts are in pairs.
    displays = watched.page.locator(".facts dd").evaluate_all("all => all.map((e) => getComputedStyle(e).display)")
    assert set(displays) == {"inline"}
    watched.page.set_viewport_size({"width": 703, "height": 1000})
    left, right = (watched.page.locator(each).bounding_box() for each in ("#use-cpu", "#use-memory"))
    assert left["y"] == right["y"]


TERMINAL = """
import json, sys
from loadstone.config.variants import Variants
from loadstone.workflow import summary
config, declared = json.loads(sys.argv[1])
summary.show(config, Variants(declared))
"""


def test_the_terminal_says_what_the_page_says(pages):
    folder = pages[0].parents[2]
    (campaign,) = archive.campaigns(folder / "archive")
    (campaign.path / archive.COMPLETION).touch()
    config = {"host": "here", "sweep": {"app": "demo"}} | {
        name: str(folder / name) for name in ("archive", "tables", "reports")
    }
    command = [sys.executable, "-c", TERMINAL, json.dumps([config, VARIANTS.declared])]
    ran = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, capture_output=True, check=True)
    said, data = ran.stdout.decode(), data_of(pages[0])
    assert data["sheet"]["headline"] in " ".join(said.split())
    marks = [cell[3] for cells in zip(*data["matrix"]["p50"], strict=True) for cell in cells]  # by load, then variant
    verdicts = re.findall(r"│ [▲▼■○] \w+ *([a-z,†]*) *│$", said, re.MULTILINE)
    assert verdicts == marks and len({*marks}) > 2
    assert all(f"{letter} " in said.rpartition("┘")[2] for mark in marks for letter in mark.split(",") if letter)


def test_of_long_tables_30_rows_are_printed(watched, wide_site):
    watched.open(wide_site.page("wide").as_uri())
    table = watched.page.locator("#effects-table")
    table.locator("xpath=ancestor::details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    rows = table.locator("tbody tr")
    assert rows.count() > 30 and rows.last.is_visible()
    watched.page.emulate_media(media="print")
    assert rows.evaluate_all("all => all.filter((each) => each.checkVisibility()).length") == 30
    # The forest of all of them would be too small to read; the matrix has its figures.
    assert watched.page.locator("#verdict-matrix").is_visible() and not watched.page.locator("#effects").is_visible()
    assert "first 30 rows" in table.locator("xpath=..").evaluate("box => getComputedStyle(box, '::after').content")


def test_on_a_phone_a_row_is_a_load_when_there_are_many(watched, wide_site):
    watched.page.set_viewport_size({"width": 400, "height": 850})
    watched.open(wide_site.page("wide").as_uri())
    matrix = watched.page.locator("#verdict-matrix")
    assert matrix.locator("xpath=..").evaluate("box => box.scrollWidth <= box.clientWidth")
    heads = [each.bounding_box() for each in matrix.locator("thead th").all()[1:]]
    rows = [[cell.bounding_box() for cell in row.locator("td").all()] for row in matrix.locator("tbody tr").all()]
    assert len(rows) == 5 and len(heads) == 27
    for load, head in enumerate(heads):
        middle = head["y"] + head["height"] / 2
        assert all(row[load]["y"] <= middle <= row[load]["y"] + row[load]["height"] for row in rows)
    places = [head["x"] + head["width"] for head in heads[:1]] + [row[0]["x"] for row in rows]
    assert places == sorted(places) and heads[6]["y"] < 850


def test_three_loads_fit_on_a_phone(watched, used):
    watched.page.set_viewport_size({"width": 400, "height": 850})
    watched.open(used.as_uri())
    box = watched.page.locator(".scroll:has(#verdict-matrix)")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert box.bounding_box()["y"] < 530


def test_the_matrix_follows_the_chosen_statistic(watched, page):
    watched.open(page.as_uri())
    cells, baseline = data_of(page)["matrix"], data_of(page)["baseline_cells"]

    def shown(which: str = "tr:not(.baseline)") -> list[list[str]]:
        rows = watched.page.locator(f"#verdict-matrix tbody {which}").all()
        return [[" ".join(cell.split()) for cell in row.locator("td").all_text_contents()] for row in rows]

    def expected(statistic: str) -> list[list[str]]:
        symbols = data_of(page)["symbols"]
        return [
            [
                f"{symbols[verdict]}{verdict}: {size}{mark}{interval}{value}"
                for verdict, size, interval, mark, value in row
            ]
            for row in cells[statistic]
        ]

    def plain(rows: list[list[str]]) -> list[list[str]]:
        return [["".join(cell.split()) for cell in row] for row in rows]

    assert plain(shown()) == plain(expected("p50"))
    watched.do(lambda: watched.page.locator("form.controls input[name=stat][value=p99]").first.check(force=True))
    assert plain(shown()) == plain(expected("p99")) != plain(expected("p50"))
    assert plain(shown(".baseline")) == plain([["".join(cell) for cell in row] for row in baseline["p99"]])
    assert baseline["p50"] != baseline["p99"]
    assert "99" in watched.page.locator("#verdict-matrix caption").inner_text()
    label = watched.page.locator(".scroll:has(#verdict-matrix)").get_attribute("aria-label")
    assert re.fullmatch("Table: The (p99|99th percentile) relative to Direct", label)


def test_only_marks_of_the_shown_statistic_are_explained(watched, page):
    html, data = page.read_text(), data_of(page)
    unmarked = data["matrix"] | {
        "p99": [[cell and [*cell[:3], "", cell[4]] for cell in row] for row in data["matrix"]["p99"]]
    }
    other = page.with_name("unmarked.html")
    found = re.search(r'id="page-data">(.*?)</script>', html, re.DOTALL)[1]
    other.write_text(html.replace(found, json.dumps(data | {"matrix": unmarked}).replace("<", "\\u003c")))
    watched.open(other.as_uri())

    def visible(selector: str) -> list[str]:
        return watched.page.locator(selector).locator("visible=true").all_inner_texts()

    explained = []
    for statistic in watched.page.locator("form.controls").first.locator("input[name=stat]").all():
        watched.do(lambda statistic=statistic: statistic.check(force=True))
        explained.append({text[0] for text in visible("#verdict-key [data-mark]")})
        assert explained[-1] == {mark for text in visible("#verdict-matrix sup") for mark in text.split(",")}
    assert set() in explained and max(map(len, explained)) > 1


def test_titles_of_charts_state_the_finding_about_the_chosen_statistic(watched, page):
    watched.open(page.as_uri())

    def title(chart: str) -> str:
        return plain(watched.page.locator(f"#{chart} h3").inner_text())

    assert re.fullmatch(rf"{re.escape(LABEL)} adds 10.\d ms to the median at 200 requests/s", title("latency"))
    assert title("effects") == f"{LABEL} is slower than Direct at 100, 200 and 400 requests/s"
    assert re.fullmatch(r"Mesh over Direct adds 2.\d+ ms to the median at 400 requests/s", title("layers"))
    assert title("curves") == "Latency by percentile", "no figure of a verdict"
    watched.do(lambda: watched.page.locator("form.controls input[name=stat][value=p99]").first.check(force=True))
    assert "ms to the p99 at" in title("latency")
    watched.do(lambda: watched.page.locator("input[name=hide]").first.uncheck(force=True))
    assert title("latency") == "Latency of all requests"


def test_how_to_read_a_chart_opens_by_keyboard(watched, page):
    watched.open(page.as_uri())
    how = watched.page.locator("#latency .how")
    assert not how.locator("p").first.is_visible()
    how.locator("summary").focus()
    watched.page.keyboard.press("Enter")
    assert how.locator("p").first.is_visible()


def saved(watched, page: Path, title: str, table: str = "#cells-table") -> str:
    watched.open(page.as_uri())
    button = watched.page.locator(f".scroll:has({table}) + .files button", has_text=title)
    with watched.page.expect_download() as download:
        button.click()
    return Path(download.value.path()).read_text()


def test_a_table_as_csv_and_markdown(watched, pages):
    rows = list(csv.reader(io.StringIO(saved(watched, pages[0], "CSV"))))
    assert len(rows) == 1 + 20 and len({len(row) for row in rows}) == 1
    assert rows[0][:2] == ["Load (requests/s)", "Variant"] and LABEL in {row[1] for row in rows}
    text = saved(watched, pages[0], "Markdown")
    assert text.splitlines()[0].startswith("| Load (requests/s) | Variant |") and len(text.splitlines()) == 22
    assert re.search(r"\| Direct \| [0-9.]+ \[[0-9.]+, [0-9.]+\] ", text)


def test_a_saved_table_has_the_visible_rows_and_any_label(watched, pages):
    def saved_with(label: str, title: str) -> str:
        watched.open(pages[0].as_uri())
        watched.page.locator("#cells-table tbody tr").evaluate_all(
            """(rows, label) => {
                rows.slice(1).forEach((row) => { row.hidden = true; });
                rows[0].cells[0].textContent = label;
            }""",
            label,
        )
        with watched.page.expect_download() as download:
            watched.page.locator(".scroll:has(#cells-table) + .files button", has_text=title).click()
        return Path(download.value.path()).read_text()

    formulas = {
        '=1, "2"': '\'=1, "2"',
        "-1+cmd|' /C x'!A0": "'-1+cmd|' /C x'!A0",
        "@x": "'@x",
        "+5.2 % [3, 7]": "+5.2 % [3, 7]",
    }
    for label, text in formulas.items():
        _, (first, *_) = csv.reader(io.StringIO(saved_with(label, "CSV")))
        assert first == text
    latex = saved_with("[a] | b--c `d` ≥", "LaTeX").splitlines()
    (row,) = latex[latex.index("\\midrule") + 1 : latex.index("\\bottomrule")]
    assert row.startswith(r"{[}a] \textbar{} b-{}-c \textasciigrave{}d\textasciigrave{} $\geq$ & ")
    assert saved_with("~a~ &lt; $b$", "Markdown").splitlines()[2].startswith(r"| \~a\~ \&lt; \$b\$ | ")


def test_what_marks_stand_for_is_saved_with_the_table(watched, page):
    watched.open(page.as_uri())
    buttons = watched.page.locator("#verdict-matrix").locator("xpath=../following-sibling::p[1]").locator("button")
    saved = {}
    for button in buttons.all():
        with watched.page.expect_download() as download:
            button.click()
        saved[button.inner_text()] = Path(download.value.path()).read_text()
    marks = watched.page.locator("#verdict-matrix sup").all_inner_texts()
    key = dict(
        zip(*(watched.page.locator(f"#verdict-key {each}").all_inner_texts() for each in ("sup", "a")), strict=True)
    )
    assert key.keys() == {letter for mark in marks for letter in mark.split(",") if letter != "†"} != set()
    caption, table, explained = saved["Markdown"].split("\n\n")
    assert caption.startswith("The ") and caption.endswith("by load in requests/s")
    assert explained.startswith("▲ slower; ▼ faster; ")
    assert all(f"; {letter} {heading}" in explained for letter, heading in key.items())
    assert all(f" {mark} [" in table for mark in marks)
    assert "\\par\\small $\\blacktriangle$ slower; " in saved["LaTeX"]
    assert "slower;" not in saved["CSV"]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_every_table_as_latex_compiles(watched, page, tmp_path):
    watched.open(page.as_uri())
    bodies = []
    for button in watched.page.locator(".files button", has_text="LaTeX").all():
        with watched.page.expect_download() as download:
            button.evaluate("button => button.click()")  # some tables are folded
        bodies.append(Path(download.value.path()).read_text())
    assert len(bodies) > 5
    packages = "\\usepackage[utf8]{inputenc}\\usepackage{booktabs,amssymb,textcomp}"
    tables = "\\clearpage\n".join(bodies)
    (tmp_path / "t.tex").write_text(f"\\documentclass{{article}}{packages}\\begin{{document}}{tables}\\end{{document}}")
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:]


def test_a_summary_is_one_page_and_always_the_same(page, tmp_path):
    first = build_summary(page, tmp_path / "one.pdf").read_bytes()
    assert first.startswith(b"%PDF") and first.count(b"/Type /Page\n") == 1
    assert build_summary(page, tmp_path / "two.pdf").read_bytes() == first
