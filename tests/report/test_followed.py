"""Figures that are printed on pages, recomputed with numpy from the raw files alone (`report.followed`)."""

import random

import pytest
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report.site_layout import slug
from report.followed import EARLY, LABELS, LATE, Claim, Reader, read, write_archive
from report.printed import agrees
from support.site import build_campaign, build_comparison, build_index, write_assets
from tables.tabling import Project

PICKED = 50
VARIANTS = Variants({"demo": {name: {"label": label} for label, name in LABELS.items()}})
SETTINGS = Settings(order=tuple(LABELS.values()))


@pytest.fixture(scope="module")
def seed() -> int:
    return random.SystemRandom().randrange(2**32)


@pytest.fixture(scope="module")
def claims(tmp_path_factory, seed) -> list[Claim]:
    """All figures in tables of both campaigns' pages and of the page that compares them, of an archive of chance."""
    folder = tmp_path_factory.mktemp("followed")
    project = Project(folder)
    write_archive(project.archive, seed)
    project.convert()
    campaigns, reports = list(archive.campaigns(project.archive)), folder / "reports"
    for campaign in campaigns:
        analyse_campaign(campaign, project.tables, settings=SETTINGS)
    write_assets(reports)
    for campaign in campaigns:
        build_campaign(campaign, project.tables, reports, VARIANTS, {})
    declared = Comparison(id="both", title="Both", app="demo", hosts=("here",), timestamps=(EARLY, LATE))
    compare(declared, campaigns, project.tables, SETTINGS)
    build_comparison(declared, campaigns, project.tables, reports, VARIANTS, options={})
    build_index(campaigns, project.tables, reports, VARIANTS, {}, comparisons=[declared])
    raw = {campaign: read(campaign.path) for campaign in campaigns}
    readers = [Reader(reports / f"campaigns/{slug(campaign)}.html", runs) for campaign, runs in raw.items()]
    readers.append(Reader(reports / "comparisons/both.html", [run for runs in raw.values() for run in runs]))
    return [claim for reader in readers for claim in reader.claims()]


def test_fifty_figures_picked_at_random_are_those_of_the_raw_files(claims, seed):
    picked = random.Random(seed).sample(claims, PICKED)
    wrong = [f"{claim.where}: {claim.text}, numpy has {claim.value():.9g}" for claim in picked if not claim.holds]
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)


def test_every_table_of_figures_is_among_those_that_are_picked_from(claims):
    tables = {claim.where.split(", ")[1] for claim in claims}
    assert tables == {
        "All cells",
        "All figures",
        "Cells with excluded runs",
        "All verdicts",
        "Send lag",
        "Errors by cause",
        "As reported by the tool",
        "Campaigns",
    }
    assert len(claims) > 400


@pytest.mark.parametrize(
    ("text", "value", "held"),
    [
        ("4.24", 4.2449, True),
        ("4.24", 4.246, False),
        ("± 0.0676", 0.06764, True),
        ("± 0.0676", 0.0677, False),
        ("1,234", 1234.4, True),
        ("1,234", 1235, False),
        ("6.67 %", 0.066699, True),
        ("6.67 %", 0.0668, False),
        ("50 %", 0.5004, True),
        ("50 %", 0.501, False),
        ("−0.104 points", -0.00104, True),
        ("0 %", 0.0, True),
        ("0 %", 0.001, False),
        ("–", float("nan"), True),
    ],
)
def test_no_more_is_forgiven_than_the_digits_that_are_not_printed(text, value, held):
    assert agrees(text, value) is held
