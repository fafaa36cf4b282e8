"""What a campaign page says of a cluster's incidents, from runs' records to the words."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from loadstone import archive
from loadstone.config.variants import Variants
from report.conftest import SCRIPT
from support import site
from support.rawfiles import compress, lines, write_cell
from support.site import write_assets
from tables.tabling import Project

VARIANTS = Variants({"demo": {"plain": {"label": "Direct"}, "istio": {"label": "Istio", "aliases": ["envoy"]}}})
RUN = compress(lines([2_000_000] * 100))
OOM = {
    "kind": "oom",
    "object": "shop/web-1",
    "container": "app",
    "reason": "OOMKilled",
    "text": "killed",
    "count": 2,
}
WARNING = {"kind": "warning", "object": "Pod shop/web-1", "reason": "Unhealthy", "text": "probe failed", "count": 7}
UNKNOWN = {"kind": "unknown", "object": "shop", "text": "the cluster did not answer"}
CLUSTER = {"server_version": "v1.36.3", "pods": []}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def record(incidents: Any = None, cluster: Any = CLUSTER) -> bytes:
    """What a run of a cluster leaves; without `incidents` of a time when nobody looked."""
    told = {} if incidents is None else {"incidents": incidents}
    return json.dumps({"run": 1, **told} | ({} if cluster is None else {"cluster": cluster})).encode()


def write(project: Project, *records: bytes, variant: str = "plain") -> None:
    files = {f"{run}.results.json.zst": RUN for run in range(1, len(records) + 1)}
    files |= {f"{run}.run.json": content for run, content in enumerate(records, 1)}
    plan = {"kind": "fixed", "positions": list(range(1, len(records) + 1))}
    write_cell(project.archive, files, variant=variant, runs=len(records), order=plan)


def build(project: Project, **analysis: Any) -> Path:
    project.convert()
    project.analyse(**analysis)
    (campaign,) = archive.campaigns(project.archive)
    write_assets(project.tables.parent / "reports")
    return site.build_campaign(campaign, project.tables, project.tables.parent / "reports", VARIANTS, {})


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


def section(page: Path) -> str:
    found = re.search(r'<section aria-labelledby="incidents">.*?</section>', page.read_text(), re.DOTALL)
    return words(found[0]) if found else ""


def test_what_happened_to_which_runs_how_often_and_what_became_of_them(project: Project) -> None:
    write(project, record([OOM, WARNING]), record([WARNING]), record([]), record([OOM]))
    write(project, record([{**OOM, "count": 1}]), record([]), variant="envoy")
    tag = {"tag": "FAILED", "variant": "plain", "run": "4", "reason": "memory"}
    page = build(project, tags=[tag], excluding=["FAILED"])
    said = section(page)
    assert "in 4 of 6 runs" in said
    assert "Containers killed for lack of memory 5 3 2" in said  # how often, in runs, of which count
    assert "Warnings 14 2 2" in said
    for expected in (
        "Direct 100/s, run 1 containers killed for lack of memory: 2, warnings: 7 shop/web-1, container app: OOMKilled",
        "OOMKilled: killed Pod shop/web-1: Unhealthy: probe failed (7 times) valid; tag doubtful is suggested",
        "run 4 containers killed for lack of memory: 2 shop/web-1, container app: OOMKilled: killed excluded: tagged",
        "excluded: tagged FAILED: memory",
        "Istio 100/s, run 1 containers killed for lack of memory: 1",
        "Direct 100/s, run 2 warnings: 7 Pod shop/web-1: Unhealthy: probe failed (7 times) valid",
    ):
        assert expected in said, expected
    assert said.index("Istio 100/s, run 1") < said.index("Direct 100/s, run 2")  # the worst first
    top = (
        "In 3 of 6 runs, pods or containers died, restarted or were moved during the attack; 2 of these runs are valid"
    )
    assert top in words(page.read_text())


def test_a_tag_that_does_not_exclude_is_named_and_suggested_no_more(project: Project) -> None:
    write(project, record([OOM]))
    said = section(build(project, tags=[{"tag": "doubtful", "variant": "plain", "run": "1"}]))
    assert "valid; tagged doubtful" in said and "doubtful is suggested" not in said
    assert "In 1 of 1 run, pods or containers died" in words(build(project).read_text())


@pytest.mark.parametrize("records", [[record(None, None)], [record([], None)], []])
def test_where_there_was_no_cluster_nothing_is_said(project: Project, records: list[bytes]) -> None:
    write(project, *(records or [b"{}"]))
    page = build(project)
    assert section(page) == "" and 'id="incidents"' not in page.read_text()


def test_none_were_seen_only_where_somebody_looked(project: Project) -> None:
    write(project, record([]), record([]), record(), record([UNKNOWN]))
    said = section(build(project))
    assert "None: in 2 runs, no pod died" in said
    assert "Unknown for 1 run: the cluster did not respond." in said
    assert "Not recorded for 1 run." in said
    assert "the cluster did not answer" in said


def test_where_nobody_looked_none_is_not_said(project: Project) -> None:
    write(project, record(), record([UNKNOWN]))
    said = section(build(project))
    assert "no pod died" not in said and "Not recorded" in said


def test_hostile_incidents_are_text_and_short(project: Project, watched) -> None:
    odd = {name: f'{SCRIPT}"<b>{name}</b>' + "x" * 5000 for name in ("object", "container", "reason", "text", "kind")}
    write(project, record([odd, {"kind": "oom", "object": None, "text": None, "count": 10**8}]), record("no list"))
    page = build(project)
    assert len(page.read_text()) < 150_000
    watched.open(page.as_uri())
    watched.page.locator("section[aria-labelledby=incidents] summary").click()
    assert SCRIPT in watched.page.locator("table.incidents").inner_text()
    assert watched.page.locator("section[aria-labelledby=incidents] b").count() == 0
    assert watched.complaints == []


def test_thousands_stay_a_readable_page(project: Project, watched) -> None:
    many = [{**WARNING, "object": f"Pod shop/web-{number}", "text": "x" * 900} for number in range(200)]
    more = {"kind": "more", "object": "shop", "text": "17 more"}
    for variant in ("plain", "envoy"):
        write(project, *[record([*many, more]) for _ in range(140)], record([OOM]), variant=variant)
    page = build(project)
    assert len(page.read_text()) < 2_000_000
    said = section(page)
    assert "Warnings 392,000 280 280" in said
    assert "280 runs had more incidents than are recorded individually." in said
    # What matters most is never cut.
    assert said.index("run 141") < said.index("run 1 warnings: 1,400, more than was recorded")
    assert "… and 189 more: all are in table incidents" in said and "… and 82 more runs" in said
    watched.page.set_viewport_size({"width": 400, "height": 900})
    watched.open(page.as_uri())
    watched.page.locator("section[aria-labelledby=incidents] summary").click()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 400
    box = watched.page.locator("table.incidents").bounding_box()
    assert box["width"] <= 400 - 2 * 16  # nothing to scroll sideways
