"""Variants are everywhere in the order in which the sweep declared them."""

import json
import re
import subprocess
import sys
from pathlib import Path

from loadstone import archive
from loadstone.analysis.comparison import compare
from loadstone.archive import plan
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from report.test_first_screen import TERMINAL
from report.test_site import Page
from support import site
from support.rawfiles import TIMESTAMP, compress, lines, write_cell
from tables.tabling import Project

NAMES = ["zebra", "plain", "middle", "a-cache"]


def made(folder: Path, kind: str = "blocks") -> Project:
    """A sweep of three runs per cell, of which the first is short and the last is missing."""
    project = Project(folder)
    for (rate, name), positions in plan.order(NAMES, [100, 50], 3, kind, 11).items():
        sent = {1: 10, 2: int(rate)}
        files = {f"{run}.results.json.zst": compress(lines([2_000_000] * n, rate=rate)) for run, n in sent.items()}
        order = {"kind": kind, "positions": positions}
        write_cell(project.archive, files, rate=f"{rate:g}", variant=name, seed=11, order=order)
    project.make()
    return project


def places(text: str) -> list[str]:
    """The variants, in the order in which a text names them first."""
    return list(dict.fromkeys(re.findall("|".join(NAMES), text)))


def test_on_the_page_of_a_campaign_and_on_the_start_page(tmp_path: Path) -> None:
    project, reports = made(tmp_path), tmp_path / "reports"
    (campaign,) = archive.campaigns(project.archive)
    page = Page(site.build_campaign(campaign, project.tables, reports, Variants({}), {}))
    data = page.json["page-data"]
    assert [variant["name"] for variant in data["variants"]] == NAMES
    assert len({variant["light"] for variant in data["variants"]}) == len(NAMES)
    specification = page.json["chart-specs"]["latency"]
    assert re.search(r"'domain': \[([^]]*)\]", str(specification))[1] == ", ".join(map(repr, NAMES))
    text = re.sub(r"\s+", " ", page.text)
    assert places(text.partition("Lin-log")[2]) == NAMES
    assert places(text.partition("All cells")[2]) == NAMES
    left_out, _, missing = text.partition("runs are excluded")[2].partition("Missing runs")
    assert places(left_out) == places(missing) == NAMES
    index = site.build_index([campaign], project.tables, reports, Variants({}), {}).read_text()
    rows = re.findall(rf'<th scope="row">.*?({"|".join(NAMES)})</th>', index)
    assert rows == [name for name in NAMES if name != "zebra"]
    quality = Page(reports / "quality.html")
    assert places(quality.text) == NAMES
    assert places(quality.text.partition("planned runs are missing")[2]) == NAMES


def test_in_the_terminal(tmp_path: Path) -> None:
    project = made(tmp_path)
    (campaign,) = archive.campaigns(project.archive)
    (campaign.path / archive.COMPLETION).touch()
    config = {"archive": str(project.archive), "tables": str(project.tables), "reports": "reports"}
    config |= {"host": campaign.host, "sweep": {"app": campaign.app}}
    command = [sys.executable, "-c", TERMINAL, json.dumps([config, {}])]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(rf"│ +50 │ ({'|'.join(NAMES)}) ", shown) == NAMES


def test_on_the_page_of_a_comparison(tmp_path: Path) -> None:
    project = made(tmp_path, "fixed")
    comparison = Comparison(id="it", title="It", app="demo", hosts=("here",), timestamps=(TIMESTAMP,))
    campaigns = list(archive.campaigns(project.archive))
    compare(comparison, campaigns, project.tables)
    path = site.build_comparison(comparison, campaigns, project.tables, tmp_path / "reports", Variants({}), options={})
    page = Page(path)
    assert [variant["name"] for variant in page.json["page-data"]["variants"]] == NAMES
    assert places(page.text.partition("All figures")[2]) == NAMES
