"""A variant has one colour on all pages, declared or not, and keeps it as the archive grows."""

import re

import pytest
from support.checkout import Checkout
from support.rawfiles import compress, lines, write_cell

DAYS = [f"2026-11-{day:02d}T12:00:00+01:00" for day in (1, 2, 3)]


def add(checkout: Checkout, day: int, *variants: str) -> None:
    for variant in variants:
        files = {f"{run}.results.json.zst": compress(lines([1_000_000 + run] * 100)) for run in (1, 2)}
        write_cell(checkout.archive, files, variant=variant, app="shop", at=DAYS[day], runs=2)


def colours(checkout: Checkout, page: str) -> dict[str, str]:
    """The colour of each variant in what the page's charts load."""
    (path,) = (checkout.path / "reports").glob(page)
    found = re.findall(r'"name":"([^"]+)","label":"[^"]*","light":"([^"]+)"', path.read_text())
    return dict(found)


@pytest.mark.long
def test_one_colour_on_all_pages_also_later(pristine, tmp_path) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout")
    add(checkout, 0, "zeta", "mu")
    add(checkout, 1, "alpha", "zeta")
    checkout.run("--cores", "2", "report")
    first, second = (colours(checkout, f"campaigns/*2026-11-0{day}*.html") for day in (1, 2))
    assert first.keys() == {"mu", "zeta"} and second.keys() == {"alpha", "zeta"}
    assert first["zeta"] == second["zeta"]
    assert len({*first.values(), *second.values()}) == 3
    add(checkout, 2, "beta", "zeta")
    jobs = checkout.jobs("--cores", "2", "report")
    assert jobs["campaign_page"] == 1
    checkout.run("--cores", "2", "report")
    third = colours(checkout, "campaigns/*2026-11-03*.html")
    assert third["zeta"] == first["zeta"] and third["beta"] not in {*first.values(), *second.values()}
