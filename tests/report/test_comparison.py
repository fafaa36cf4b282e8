"""The page of a comparison: what it says in words, and its charts in a browser."""

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.comparison import compare
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from report.printed import plain
from support import rawfiles, shapes
from support.rawfiles import line
from support.site import build_campaign, build_comparison, build_index, write_assets
from tables.tabling import Project

EARLY, LATE, ABSENT = "2024-04-26T01:47:38-04:00", "2025-01-02T11:48:47-05:00", "2025-02-25T11:08:56-05:00"
BAD = "</script><script>alert(1)</script><b>"
VARIANTS = Variants({"shop": {"istio": {"label": "With a mesh", "aliases": ["envoy"]}}})


def comparison(**changes) -> Comparison:
    fields = {"id": "mesh", "title": f"A mesh {BAD}", "app": "shop", "hosts": ("shiver",)}
    return Comparison(**(fields | {"timestamps": (EARLY, LATE, ABSENT), "exclude": ("*/10/*/3.*",)} | changes))


def write_run(project: Project, run: int, timestamp: str, rate: str, variant: str, *, mode: str, whole: bool) -> None:
    random = np.random.default_rng([run, int(rate), len(variant)])
    count = 10 * int(rate) // (1 if whole else 2)
    latencies = random.lognormal(17 + int(rate) / 40, 0.4, count).astype(np.int64)
    codes = np.where(random.random(count) < 0.1, 503, 200)
    content = b"".join(
        line(seq, int(ns), code=int(code)) for seq, (ns, code) in enumerate(zip(latencies, codes, strict=True))
    )
    counts = {"200": int((codes == 200).sum()), "503": int((codes == 503).sum())}
    cell = shapes.cell(project.archive, timestamp, rate, variant)
    files = {
        f"{run}.results.json.zst": rawfiles.compress(content),
        f"{run}.summary.json": shapes.summary(latencies.mean(), counts),
    }
    shapes.write(cell, shapes.version_3(timestamp, "shiver", rate, variant, mode), files)


def make(folder, *comparisons: Comparison, mode: str = "vegeta"):
    """A site of two campaigns with these comparisons; its folder."""
    project = Project(folder)
    for rate in ("10", "20", "40"):
        for run in (1, 2, 3):
            write_run(project, run, EARLY, rate, "envoy", mode=mode, whole=True)
            write_run(project, run, LATE, rate, "istio", mode="vegeta", whole=run < 3 or rate == "10")
            write_run(project, run, LATE, rate, BAD.replace("/", "|"), mode="vegeta", whole=True)
    project.make()
    reports, campaigns = folder / "reports", list(archive.campaigns(project.archive))
    write_assets(reports)
    for campaign in campaigns:
        build_campaign(campaign, project.tables, reports, VARIANTS, {})
    for each in comparisons:
        named = set(each.campaigns(project.archive))
        held = [campaign for campaign in campaigns if campaign in named]
        if held:
            compare(each, held, project.tables)
            build_comparison(each, held, project.tables, reports, VARIANTS, options={})
    build_index(campaigns, project.tables, reports, VARIANTS, {}, comparisons=comparisons)
    return reports


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    gone = comparison(id="gone", title="Of nothing that is here", timestamps=(ABSENT,))
    return make(tmp_path_factory.mktemp("compared"), comparison(), gone)


def test_the_page_says_what_it_rests_on_and_what_was_left_out(site):
    text = (site / "comparisons/mesh.html").read_text()
    assert "The figures are based on 22 runs; 2 excluded, 3 not compared." in text
    assert "200 requests instead of 400" in text
    assert "9 runs of these campaigns not asked for" not in text
    assert "3 runs of these campaigns not compared" in text and "<code>*/10/*/3.*</code>: 3 runs" in text
    assert text.count("not in the archive") == 1
    assert text.count('href="../campaigns/') == 2
    assert "2 of 3 named" in text
    assert BAD not in text and "&lt;/script&gt;" in text


def test_comparisons_are_linked_and_those_without_campaigns_are_named_aside(site):
    text = (site / "index.html").read_text()
    assert 'href="comparisons/mesh.html"' in text
    assert "Of nothing that is here" not in text
    text += (listed := (site / "comparisons.html").read_text())
    assert 'href="comparisons/mesh.html"' in listed
    assert "Of nothing that is here (<code>gone</code>)" in listed
    assert "comparisons/gone.html" not in text
    assert sorted(path.name for path in (site / "comparisons").iterdir()) == [
        "mesh",
        "mesh-ro-crate-metadata.json",
        "mesh.html",
        "mesh.png",
        "mesh.sha256",
    ]
    assert BAD not in text


def test_what_must_not_be_pooled_is_refused_in_words(tmp_path):
    allowed = comparison(id="allowed", allow=frozenset({"load_models"}))
    site = make(tmp_path, comparison(), allowed, mode="serial")
    text = (site / "comparisons/mesh.html").read_text()
    assert "This comparison has no figures: its runs are of different load models (open, serial)" in text
    assert "allow: [load_models]" in text and "<figure" not in text
    text = (site / "comparisons/allowed.html").read_text()
    assert "no figure combines two of them" in text and "<figure" in text
    assert "With a mesh (open)" in text and "With a mesh (serial)" in text
    # What tables tell names variants, not their series: by their labels all the same.
    weak = text.partition('aria-labelledby="claims"')[2].partition("</section>")[0]
    assert "With a mesh at " in weak and "istio" not in weak


@pytest.mark.parametrize("width", [1400, 400])
def test_the_charts_are_drawn_by_every_method(site, watched, width):
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.open((site / "comparisons/mesh.html").as_uri())
    seen = {}
    for name in ("Mean of runs", "Mean of requests", "Median", "p99"):
        watched.do(watched.page.get_by_role("radio", name=name, exact=True).first.check)
        rows = watched.view("latency", "view.data('rows')")
        assert len(rows) == 6
        seen[name] = tuple((row["value"], row["low"]) for row in rows)
        assert all(row["low"] <= row["value"] <= row["high"] for row in rows if row["low"] is not None)
    assert len(set(seen.values())) == 4
    for figure in ("latency", "success", "failed", "errors-1"):
        assert watched.page.locator(f"#{figure} .plot svg g[class*='role-mark'] > *").count() > 3
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.complaints == []
    assert all(address.startswith(site.as_uri()) or address == "data:," for address in watched.requests)


def test_runs_of_which_only_the_report_is_left_are_said_to_be_in_comparisons_alone(tmp_path):
    project = Project(tmp_path)
    for run in (1, 2):
        write_run(project, run, LATE, "10", "istio", mode="vegeta", whole=True)
    (project.archive / f"shop/shiver/{LATE}/10/istio/2.results.json.zst").unlink()
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    page = build_campaign(campaign, project.tables, tmp_path / "reports", VARIANTS, {}).read_text()
    assert "2 runs; 0 excluded; 1 with only the load generator&#39;s report, listed separately" in page
    assert "As reported by the tool" in page and "all from vegeta&#39;s report" in page
    compare(comparison(), [campaign], project.tables)
    page = build_comparison(
        comparison(), [campaign], project.tables, tmp_path / "reports", VARIANTS, options={}
    ).read_text()
    assert "The figures are based on 2 runs; 0 excluded; 1 run has only the load generator&#39;s report." in page
    assert "the two averages cover different numbers of runs" in page and "of 1 run</span>" in page


def test_reports_that_contradict_their_requests_are_counted_and_named(tmp_path):
    project = Project(tmp_path)
    for run in (1, 2):
        write_run(project, run, LATE, "10", "istio", mode="vegeta", whole=True)
    cell = shapes.cell(project.archive, LATE, "10", "istio")
    (cell.path / "2.summary.json").write_bytes(shapes.summary(5.0, {"200": 100}))
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    compare(comparison(), [campaign], project.tables)
    built = build_comparison(comparison(), [campaign], project.tables, tmp_path / "reports", VARIANTS, options={})
    page = plain(built.read_text())
    assert "on 2 runs; 0 excluded; the report of 1 run contradicts itself or the requests." in page
    assert "With a mesh, run 2 (shiver, 2025-01-02 11:48 UTC-05:00): its report says that the mean is 5e-06 ms" in page
    assert "1 run has a report that contradicts itself or the run's requests" in page
