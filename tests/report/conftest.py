"""What the report's tests share: made-up campaigns, their site, and a Chromium to look at it."""

import functools
import http.server
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from loadstone.archive import Campaign
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report.site_layout import slug
from report.concluded import write_many
from report.synthetic import Made, write, write_compared
from support import site
from support.site import write_assets
from support.workers import made_once

SCRIPT = "<script>alert(1)</script>"
TITLED = {"title": "Results of <us> & them"}
ENDING = '</script><b>"x"</b><!--'

VARIANTS = Variants(
    {"demo": {"plain": {"label": "Direct", "colour": "#0072B2"}, "envoy": {"label": "Envoy", "colour": "#E69F00"}}}
)
# As strict as it can be: no inline script or style, no eval, no request elsewhere.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Site:
    """A site and what it was made from."""

    reports: Path
    tables: Path
    campaigns: dict[str, Campaign]

    def page(self, name: str) -> Path:
        return self.reports / "campaigns" / f"{slug(self.campaigns[name])}.html"

    @property
    def pages(self) -> list[Path]:
        return sorted(self.reports.rglob("*.html"))

    def data(self, name: str) -> Path:
        return self.reports / "campaigns" / slug(self.campaigns[name])


@pytest.fixture(scope="session")
def made_site(tmp_path_factory) -> Site:
    """Three campaigns: `good`, without any error; `hostile`, with names, errors and gaps; `empty`, in no table yet."""
    return made_once(tmp_path_factory, "site", _make_site)


def _make_site(root: Path) -> Site:
    archive, tables, reports = root / "archive", root / "tables", root / "reports"
    campaigns = {
        "good": Campaign(archive, "demo", "myhost", "2026-11-21T11:30:00+00:00"),
        "hostile": Campaign(archive, f"shop {SCRIPT.replace('/', '')}", "big.host", "2026-11-21T09:00:00-04:00"),
        "empty": Campaign(archive, "demo", "other", "2026-11-19T11:30:00+00:00"),
    }
    write(tables, campaigns["good"], Made(["plain", "envoy"], [100.0, 300.0, 1000.0], runs=3, requests=1200))
    hostile = Made(
        ["plain", SCRIPT, ENDING],
        [10.0, 50.0, 200.0],
        runs=3,
        requests=300,
        base_ms=20,
        failing=SCRIPT,
        excluded=("plain", 2),
        missing=("plain", 3),
    )
    write(tables, campaigns["hostile"], hostile)
    write_assets(reports)
    for campaign in campaigns.values():
        site.build_campaign(campaign, tables, reports, VARIANTS, TITLED)
    site.build_index(list(campaigns.values()), tables, reports, VARIANTS, TITLED)
    return Site(reports, tables, campaigns)


@pytest.fixture(scope="session")
def wide_site(tmp_path_factory) -> Site:
    """A campaign of 27 rates, 5 variants and 10 runs; runs are short, for the page's size does not depend on that."""
    return made_once(tmp_path_factory, "wide", _make_wide_site)


def _make_wide_site(root: Path) -> Site:
    campaign = Campaign(root / "archive", "demo", "wide", "2026-11-20T11:30:00+00:00")
    rates = [20.0 * step for step in range(1, 28)]
    made = Made([f"variant-{letter}" for letter in "abcde"], rates, runs=10, requests=60, failing="variant-e")
    write(root / "tables", campaign, made)
    write_many(root / "tables", campaign, list(made.variants), rates)
    write_assets(root / "reports")
    site.build_campaign(campaign, root / "tables", root / "reports", VARIANTS, {})
    compared = Comparison("wide", "All of it", "demo", ("wide",), (campaign.timestamp,))
    write_compared(root / "tables", campaign, compared.id)
    write_many(root / "tables", campaign, list(made.variants), rates, compared.id)
    site.build_comparison(compared, [campaign], root / "tables", root / "reports", VARIANTS, options={})
    return Site(root / "reports", root / "tables", {"wide": campaign})


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium that asks nothing of the network by itself. The headless shell takes half of the CPU time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(
                executable_path=found,
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"],
            )
        except sync_api.Error as error:
            if os.environ.get("LOADSTONE_REQUIRE_BROWSER") == "1":
                raise
            pytest.skip(f"no Chromium starts here (make browser installs one): {str(error).splitlines()[0]}")
        yield launched
        launched.close()


# They keep their place, so what scrolls still scrolls. Names of attributes count, their values where they are no text.
_HIDE_ROWS_BUILT_ALIKE = """() => document.querySelectorAll('tbody').forEach((body) => {
    const seen = new Set();
    const is_text = (name) => /^(href|id|title|data-|aria-label|headers)/.test(name);
    const built = (each) => [each.tagName, Boolean(each.textContent.trim()), ...[...each.attributes].map(
        ({ name, value }) => `${name}=${is_text(name) ? Boolean(value.trim()) : value}`)].join(' ');
    for (const row of body.rows) {
        const key = [row, ...row.querySelectorAll('*')].map(built).join();
        if (seen.has(key)) row.style.visibility = 'hidden';
        seen.add(key);
    }
})"""
_REPEATED_IDS = """() => [...document.querySelectorAll('tbody [id]')].map((each) => each.id)
    .filter((id) => document.querySelectorAll('#' + CSS.escape(id)).length > 1)"""


class Watched:
    """A page of the browser, with everything it asked for and complained about."""

    def __init__(self, page):
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open(self, address: str) -> None:
        """Open an address and wait until every chart is drawn."""
        self.page.goto(address)
        self.settle()

    def settle(self) -> None:
        """Wait until no figure waits to be drawn."""
        # What was asked for by an address within the page is heard of a moment later.
        self.page.evaluate("new Promise((done) => setTimeout(() => setTimeout(done)))")
        # Not wait_for_function, which a strict content security policy forbids.
        self.page.locator("figure[data-chart]:not([data-state=drawn])").first.wait_for(state="detached")

    def do(self, action) -> None:
        """Do something to the controls and wait until the charts have followed."""
        action()
        self.settle()

    def follow(self, link) -> None:
        """Click a link to another page and wait until every chart there is drawn."""
        with self.page.expect_navigation():
            link.click()
        self.settle()

    def cut_texts(self) -> list[list[str]]:
        """Figure and text of all that goes beyond the box of its chart, where it is cut in files and on paper."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll('.plot svg')].flatMap((svg) => {
                const box = svg.getBoundingClientRect();
                const beyond = ({ width, left, right, top, bottom }) => width > 0
                    && (left < box.left - 1 || right > box.right + 1 || top < box.top - 1 || bottom > box.bottom + 1);
                return [...svg.querySelectorAll('text')].filter((text) => beyond(text.getBoundingClientRect()))
                    .map((text) => [svg.closest('figure').id, text.textContent]);
            })"""
        )

    def violations(self) -> dict[str, list[str]]:
        """What axe finds, with all details open: rule -> HTML of the first elements.

        Table rows that are built like an earlier one of their table are hidden: axe takes a millisecond per element.
        """
        self.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        repeated = self.page.evaluate(_REPEATED_IDS)
        self.page.evaluate(_HIDE_ROWS_BUILT_ALIKE)
        found = Axe().run(self.page).response["violations"]
        rules = {each["id"]: [node["html"][:200] for node in each["nodes"][:3]] for each in found}
        return rules | ({"repeated id": repeated} if repeated else {})

    def view(self, figure: str, expression: str):
        """What an expression says of the Vega view of a figure."""
        return self.page.evaluate(f"(() => {{ const view = loadstone.view('{figure}'); return {expression}; }})()")


@pytest.fixture
def watched(browser):
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = Watched(context.new_page())
    yield page
    context.close()


@pytest.fixture(scope="session")
def server(made_site):
    """The address of a static server over the site that forbids everything but the site's own files."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def end_headers(self):
            self.send_header("Content-Security-Policy", POLICY)
            super().end_headers()

        def log_message(self, *_args):
            pass

    handler = functools.partial(Quiet, directory=made_site.reports)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
