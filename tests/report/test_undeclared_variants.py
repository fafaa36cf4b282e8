"""Undeclared variants look the same on every page, and stay as they look when others come."""

from pathlib import Path

from loadstone import archive
from loadstone.config.variants import Variants
from loadstone.workflow.declarations import first_seen, undeclared_in
from support.rawfiles import write_cell

DAYS = [f"2026-11-{day:02d}T12:00:00+01:00" for day in range(1, 10)]
DECLARED = Variants({"shop": {"plain": {"aliases": ["old plain"]}}})


def campaign(root: Path, day: int, *variants: str, app: str = "shop") -> archive.CampaignListing:
    for variant in variants:
        write_cell(root, {}, variant=variant, app=app, at=DAYS[day])
    return archive.scan_campaign(archive.Campaign(root, app, "here", DAYS[day]))


def test_in_the_order_in_which_campaigns_brought_them(tmp_path: Path) -> None:
    first = campaign(tmp_path, 0, "old plain", "v10", "v9")
    second = campaign(tmp_path, 1, "plain", "a", "v9")
    other = campaign(tmp_path, 0, "v1", app="store")
    assert first_seen(DECLARED, [second, other, first]) == {"shop": ["v9", "v10", "a"], "store": ["v1"]}


def test_what_comes_later_touches_no_page_of_before(tmp_path: Path) -> None:
    before = [campaign(tmp_path, day, *names) for day, names in enumerate((["v2", "v3"], ["v3"], ["plain"]))]
    seen = first_seen(DECLARED, before)
    pages = [undeclared_in(DECLARED, seen, [each]) for each in before]
    assert pages == [{"shop": ["v2", "v3"]}, {"shop": ["v2", "v3"]}, {}]
    later = first_seen(DECLARED, [*before, campaign(tmp_path, 3, "v1", "v3")])
    assert [undeclared_in(DECLARED, later, [each]) for each in before] == pages
    assert undeclared_in(DECLARED, later, before[1:2]) == {"shop": ["v2", "v3"]}
    styles = Variants(DECLARED.declared, pages[1]).styles("shop", ["v3"])
    assert styles[0] in Variants(DECLARED.declared, pages[0]).styles("shop", ["v2", "v3"])


def test_names_that_are_no_text_are_shown_as_everywhere(tmp_path: Path) -> None:
    listing = campaign(tmp_path, 0, b"caf\xe9".decode("utf-8", "surrogateescape"))
    assert first_seen(DECLARED, [listing]) == {"shop": ["caf\\xe9"]}
    assert undeclared_in(DECLARED, first_seen(DECLARED, [listing]), [listing]) == {"shop": ["caf\\xe9"]}
