"""What a reader chooses: in the address and back again, by clicks on names, in light and dark, with keys alone."""

from itertools import pairwise

from loadstone.report import site_layout
from report.conftest import SCRIPT
from report.printed import plain
from report.test_browser import choose

STATES = "[...document.querySelectorAll('input[name=stat]')].find((input) => input.checked).value"


def test_going_back_takes_back_one_choice_after_the_other(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    page = watched.page
    start = page.url
    watched.do(choose(page, "p99"))
    watched.do(page.get_by_label("Envoy", exact=True).uncheck)
    assert "stat=p99" in page.url and "hide=envoy" in page.url
    watched.do(page.go_back)
    assert page.evaluate(STATES) == "p99" and page.get_by_label("Envoy", exact=True).is_checked()
    assert {row["variant"] for row in watched.view("latency", "view.data('rows')")} == {"plain", "envoy"}
    watched.do(page.go_back)
    assert page.evaluate(STATES) == "p50" and page.url == start
    watched.do(page.go_forward)
    watched.do(page.go_forward)
    assert page.evaluate(STATES) == "p99" and not page.get_by_label("Envoy", exact=True).is_checked()
    assert watched.complaints == []


def test_a_place_in_the_page_chooses_nothing(made_site, watched):
    watched.open(f"{made_site.page('good').as_uri()}#stat=p99")
    watched.do(lambda: watched.page.evaluate("location.hash = '#cells'"))
    assert watched.page.evaluate(STATES) == "p99"


def test_an_address_leads_to_a_single_run(made_site, watched):
    watched.open(f"{made_site.page('hostile').as_uri()}#rate=200&variant=plain&run=2")
    page = watched.page
    assert plain(page.locator("#run-name").inner_text()) == "Run 2 of plain at 200 requests/s"
    assert page.locator("#excluded-run").is_visible()
    page.wait_for_function("Math.abs(document.getElementById('inspector').getBoundingClientRect().top) < 400")


def test_the_page_of_data_quality_leads_to_a_single_run(made_site, watched):
    watched.open((made_site.reports / "quality.html").as_uri())
    page = watched.page
    page.get_by_text("Why 3 runs are excluded").click()
    watched.follow(page.get_by_role("link", name="200 requests/s, plain, run 2").last)
    assert plain(page.locator("#run-name").inner_text()) == "Run 2 of plain at 200 requests/s"
    assert page.locator("#excluded-run").inner_text() == (
        "This run is excluded from every statistic: incomplete: 3 of <b>9</b> requests."
    )
    assert watched.complaints == []


def test_a_click_on_a_name_beside_a_line_hides_it_and_a_button_brings_it_back(made_site, watched):
    watched.open(made_site.page("hostile").as_uri())
    page = watched.page
    watched.do(page.locator("#latency .plot svg text", has_text=SCRIPT).first.click)
    for figure in ("latency", "success", "time-p50"):
        assert SCRIPT not in {row["variant"] for row in watched.view(figure, "view.data('rows')")}
    assert not page.get_by_label(SCRIPT, exact=True).is_checked()
    button = page.locator("#latency .legend").get_by_role("button", name=SCRIPT)
    assert button.get_attribute("aria-pressed") == "false"
    button.focus()
    watched.do(lambda: page.keyboard.press("Enter"))
    assert SCRIPT in {row["variant"] for row in watched.view("latency", "view.data('rows')")}
    assert page.locator("#latency .legend button").count() == 0
    assert watched.complaints == []


def test_on_a_phone_the_names_below_a_chart_are_buttons_that_keep_their_focus(made_site, watched):
    watched.page.set_viewport_size({"width": 400, "height": 800})
    watched.open(made_site.page("good").as_uri())
    button = watched.page.locator("#latency .legend").get_by_role("button", name="Envoy")
    button.focus()
    watched.do(lambda: watched.page.keyboard.press("Space"))
    assert {row["variant"] for row in watched.view("latency", "view.data('rows')")} == {"plain"}
    assert button.get_attribute("aria-pressed") == "false"
    watched.do(lambda: watched.page.keyboard.press("Space"))
    assert {row["variant"] for row in watched.view("latency", "view.data('rows')")} == {"plain", "envoy"}


def looks(page):
    """Colours of paper, ink, an axis and a line."""
    return page.evaluate(
        """() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
        getComputedStyle(document.querySelector('#latency .role-axis-title text')).fill,
        getComputedStyle(document.querySelector('#latency .mark-line path')).stroke]"""
    )


def test_dark_is_switched_and_remembered_on_every_page(made_site, watched):
    page = watched.page
    page.emulate_media(color_scheme="light")
    watched.open(made_site.page("good").as_uri())
    light, button = looks(page), page.get_by_role("button", name="Dark")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    dark = looks(page)
    assert button.get_attribute("aria-pressed") == "true"
    assert all(one != other for one, other in zip(light, dark, strict=True))
    watched.open((made_site.reports / "quality.html").as_uri())
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark[0]
    # Paper is light all the same.
    page.emulate_media(media="print", color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light[0]
    page.emulate_media(media="screen", color_scheme="light")
    # Who wants what the system has follows it again.
    page.get_by_role("button", name="Dark").click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark[0]
    assert watched.complaints == []


def test_the_system_s_choice_can_be_overruled_too(made_site, watched):
    page = watched.page
    page.emulate_media(color_scheme="dark")
    watched.open(made_site.page("good").as_uri())
    dark = looks(page)
    page.get_by_role("button", name="Dark").click()
    light = looks(page)
    assert light[0] == "rgb(255, 255, 255)" and light[3] != dark[3]


def stops(page, most=100):
    """What the Tab key reaches, in its order, from the page's start: tag, and text or name."""
    found = []
    for _ in range(most):
        page.keyboard.press("Tab")
        found.append(
            page.evaluate(
                """() => { const e = document.activeElement, box = e.getBoundingClientRect();
                return [e.tagName, e.name || e.textContent.trim().slice(0, 40), Math.round(box.top + scrollY)]; }"""
            )
        )
    return found


def test_keys_go_through_the_page_from_its_top_to_its_end(made_site, watched):
    watched.page.set_viewport_size({"width": 400, "height": 800})  # one thing below the other
    watched.open(made_site.page("good").as_uri())
    found = stops(watched.page)
    names = [name for _, name, _ in found]
    header = ["Skip to content", *(entry.title for entry in site_layout.ENTRIES), "Dark"]
    assert names[: len(header)] == header
    # Of a group of radio buttons, keys reach one; each chart's words, table and files are one stop. On phones, variants
    # are hidden by the buttons below a chart.
    wanted = ["stat", "axes", "Data table", "rate", "variant", "run", "scale"]
    places = [names.index(name) for name in wanted]
    assert places == sorted(places) and ("BUTTON", "Direct") in {(tag, name) for tag, name, _ in found}
    end = [tag for tag, _, _ in found].index("BODY")
    tops = [top for _, _, top in found[len(header) : end]]
    assert end > 20 and all(after >= before - 10 for before, after in pairwise(tops))


def test_a_chart_s_table_and_files_are_reached_by_keys(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    page = watched.page
    page.locator("#latency .data > summary").focus()
    page.keyboard.press("Enter")
    page.locator("#latency .scroll table").wait_for()
    seen = [name for _, name, _ in stops(page, 6)]
    assert seen[0].startswith("Variant") and seen[1:] == ["SVG", "PNG", "Vega-Lite", "CSV", "Parquet"]


def test_the_first_key_skips_the_header(made_site, watched):
    watched.open((made_site.reports / "quality.html").as_uri())
    page = watched.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
