"""What a part of the site has lost, or what was cut short of it, is asked for under a new name and made as it was."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from loadstone.analysis import history
from loadstone.archive import Campaign
from loadstone.report import query_page
from loadstone.report.site_layout import Part, SiteSnapshot, slug
from report.conftest import VARIANTS
from report.synthetic import Made, write
from support import site
from support.site import write_assets
from support.sites import files_of

PACKAGES = Path(__file__).resolve().parents[2] / ".tools/duckdb-wasm"
AT = "2026-11-21T11:30:00+00:00"
PAGE = "campaigns/demo_here_2026-11-21T113000p0000"


@dataclass(frozen=True)
class Parts:
    """A site, the outputs of each of its parts and what makes it."""

    reports: Path
    parts: dict[str, tuple[tuple[str, ...], Callable[[], object]]]

    def again(self, name: str) -> list[str]:
        """What a new command asks for."""
        return [Path(each).name for each in SiteSnapshot(self.reports).markers(name, *self.parts[name][0])]

    def files(self) -> dict[str, bytes]:
        return {name: content for name, content in files_of(self.reports).items() if not name.startswith(".made/")}

    def make(self, name: str) -> None:
        """As Snakemake does: names that are asked for first, without the outputs that are no longer wanted."""
        for marker in SiteSnapshot(self.reports).markers(name, *self.parts[name][0]):
            Path(marker).touch()
        for output in self.parts[name][0] if name != "assets" else ():
            (self.reports / output).unlink(missing_ok=True)
        self.parts[name][1]()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Parts:
    root = tmp_path_factory.mktemp("made")
    tables, reports = root / "tables", root / "reports"
    campaign = Campaign(root / "archive", "demo", "here", AT)
    assert slug(campaign) == PAGE.partition("/")[2]
    write(tables, campaign, Made(["plain", "envoy"], [100.0, 300.0], runs=2, requests=30))
    history.write([campaign], tables, {})
    names, packages = [("demo", "plain"), ("demo", "envoy")], PACKAGES if PACKAGES.is_dir() else None

    def variants() -> object:
        return site.build_variants(names, [campaign], tables, reports, VARIANTS, options={})

    parts = {
        "assets": (("assets/site.css",), lambda: write_assets(reports)),
        PAGE: ((f"{PAGE}.html",), lambda: site.build_campaign(campaign, tables, reports, VARIANTS, {})),
        "variants": (("variants.html", "variants/demo_plain.html"), variants),
        "ask": (("ask.html",), lambda: query_page.build_query_page([campaign], tables, reports, packages, {})),
        "index": (("index.html",), lambda: site.build_index([campaign], tables, reports, VARIANTS, {})),
    }
    found = Parts(reports, parts)
    for name in parts:
        assert found.again(name) == [], "what was never made is missing, not lost"
        found.make(name)
        assert found.again(name) == []
    return found


LOST = [
    ("assets", "assets/vega.js", "cut in the middle"),
    ("assets", "assets/chart.js", "cut short"),
    ("assets", "assets/site.css", "gone"),
    (PAGE, f"{PAGE}/100.js", "gone"),
    (PAGE, f"{PAGE}/300.js", "cut in the middle"),
    (PAGE, f"{PAGE}-ro-crate-metadata.json", "cut short"),
    (PAGE, f"{PAGE}.html", "cut short"),
    ("variants", "variants.html", "gone"),
    ("variants", "variants/demo_envoy.html", "cut short"),
    ("ask", "ask/cells.js", "gone"),
    ("ask", "assets/duckdb/module-01.js", "cut in the middle"),
    ("index", "ro-crate-metadata.json", "gone"),
    ("index", "methods.html", "cut short"),
    ("index", "progress.html", "gone"),
]


@pytest.mark.parametrize(("part", "name", "how"), LOST)
def test_a_loss_is_seen_once_and_what_was_lost_is_as_it_was(made: Parts, part: str, name: str, how: str) -> None:
    before, asked = made.files(), made.again(part)
    if name not in before:
        pytest.skip("DuckDB for browsers is not installed: make ask installs it")
    content, middle = before[name], len(before[name]) // 2
    if how == "gone":
        (made.reports / name).unlink()
    else:
        rest = content[middle + 9 :] if how == "cut in the middle" else b""
        (made.reports / name).write_bytes(content[:middle] + rest)
    others = {other: made.again(other) for other in made.parts if other != part}
    is_output = how == "gone" and name in made.parts[part][0]  # whose absence Snakemake sees
    wanted = asked if is_output else [str(int(asked[0]) + 1 if asked else 1)]
    assert made.again(part) == wanted
    made.make(part)
    assert made.files() == before
    assert made.again(part) == wanted, "the name stays when all is there"
    assert {other: made.again(other) for other in others} == others


def test_what_others_write_on_may_grow(made: Parts) -> None:
    asked, path = made.again("index"), made.reports / "progress.html"
    before = path.read_bytes()
    path.write_bytes(before + b"a sweep has begun")
    assert made.again("index") == asked
    path.write_bytes(before)


def test_what_a_killed_job_left_is_not_taken_for_whole(made: Parts) -> None:
    asked = made.again("index")
    Part(made.reports, "index").begin()
    assert made.again("index") != asked
    made.make("index")
    assert made.again("index") == made.again("index") != asked


@pytest.mark.parametrize(
    "content", [None, b"12", b"7 variants.html\n", b'{"variants.html": 1', b'{"no such": 7}', b"\xff\xfe"]
)
def test_a_site_with_another_record_or_none_is_made_again(made: Parts, content: bytes | None) -> None:
    record = Part(made.reports, "variants").record
    if content is None:
        record.unlink()
    else:
        record.write_bytes(content)
    before = made.again("variants")
    made.make("variants")
    assert made.again("variants") == before and b'"variants/demo_plain.html": ' in record.read_bytes()


def test_a_command_gets_the_same_answer_whenever_it_asks(made: Parts) -> None:
    snapshot = SiteSnapshot(made.reports)
    path = made.reports / "ask/cells.js"
    path.unlink()
    first = snapshot.markers("ask", "ask.html")
    for marker in first:
        Path(marker).touch()
    assert snapshot.markers("ask", "ask.html") == first == snapshot.requested["ask"]
    made.parts["ask"][1]()
    assert path.is_file()
