"""A campaign and a comparison of which something can be concluded: several variants, loads, runs, really analysed."""

from datetime import datetime, timedelta
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from loadstone import archive
from loadstone.analysis import reasons
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.comparison import compare
from loadstone.analysis.reasons import Reason
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.percentiles import LATENCIES
from loadstone.report.site_layout import slug
from loadstone.tables import layout
from report.synthetic import Made, write
from support import rawfiles
from support.rawfiles import TIMESTAMP, lines, write_cell
from support.site import build_campaign, build_comparison, build_index, write_assets
from tables.tabling import Project

HOSTILE = "<|script><script>alert(1)<|script><b>"
LABEL = f"{HOSTILE}: full, with a rather long name"
BLOCKS = {"kind": "blocks", "positions": [1, 2, 3, 4, 5]}
# By what each is slower than the plain variant, in ms.
ADDED = {"plain": 0.0, "same": 0.01, "mesh": 2.0, "filter": 4.0, HOSTILE: 9.0}
OVER = {"plain": (), "same": (), "mesh": ("plain",), "filter": ("mesh",), HOSTILE: ("filter",)}
VARIANTS = Variants(
    {
        "demo": {
            "plain": {"label": "Direct"},
            "same": {"label": "Direct, again"},
            "mesh": {"label": "Mesh"},
            "filter": {"label": "Filter"},
            HOSTILE: {"label": LABEL},
        }
    }
)
SETTINGS = Settings(order=tuple(ADDED), over=OVER)


def write_run(project: Project, variant: str, rate: int, runs: int, *, spread: float, requests: int = 400) -> None:
    """All runs of a cell; `spread` is by how much runs differ. Beyond 200 requests/s a `filter` falls behind."""
    files = {}
    for run in range(1, runs + 1):
        random = np.random.default_rng([run, rate, len(variant)])
        level_ms = (5 + ADDED[variant]) * (1 + rate / 1000) * np.exp(spread * random.normal())
        latencies = level_ms * 1e6 * random.lognormal(0, 0.15, requests)
        if variant == "filter" and rate > 200:
            latencies += np.arange(requests) * 0.5e9 / rate
        files[f"{run}.results.json.zst"] = rawfiles.compress(lines(latencies.astype(np.int64), float(rate)))
    duration = {"rate": str(rate), "duration": f"{requests / rate:g}s", "timeout": "20s"}
    write_cell(project.archive, files, rate=str(rate), variant=variant, testOptions=duration, order=BLOCKS, runs=runs)


def make(
    folder: Path, rates: tuple[int, ...] = (50, 100, 200, 400), runs: int = 5, *, sampled: bool = False
) -> tuple[Path, Path]:
    """The pages of the campaign and of a comparison of the same; `sampled`: with resource usage."""
    project = Project(folder)
    for rate in rates:
        for variant in ADDED:
            # At the first load runs differ so much that nothing can be told.
            write_run(project, variant, rate, runs, spread=0.5 if rate == rates[0] else 0.004)
    project.convert()
    (campaign,) = archive.campaigns(project.archive)
    if sampled:
        write_samples(project.tables, campaign, rates, runs)
    analyse_campaign(campaign, project.tables, settings=SETTINGS)
    title = f"Layers {HOSTILE}"
    comparison = Comparison(id="layers", title=title, app="demo", hosts=("here",), timestamps=(TIMESTAMP,))
    compare(comparison, [campaign], project.tables, SETTINGS)
    reports = folder / "reports"
    write_assets(reports)
    build_campaign(campaign, project.tables, reports, VARIANTS, {})
    build_comparison(comparison, [campaign], project.tables, reports, VARIANTS, options={})
    return reports / "campaigns" / f"{slug(campaign)}.html", reports / "comparisons/layers.html"


def write_samples(tables: Path, campaign: archive.Campaign, rates: tuple[int, ...], runs: int) -> None:
    """CPU and memory of every run, made up."""
    first = datetime.fromisoformat(TIMESTAMP)
    for variant, rate in product(ADDED, rates):
        rows = [
            {
                **layout.campaign_key(campaign),
                "variant": variant,
                "variant_dir": variant,
                "rate": float(rate),
                "run": run,
            }
            | {"scope": "process", "name": name, "cpu_millicores": rate * 2.0 + run, "memory_mib": 64.0 + run}
            | dict.fromkeys(("sampled_at", "asked_at"), first + timedelta(seconds=second))
            for run, second, name in product(range(1, runs + 1), range(1, 5), ("app", "generator"))
        ]
        path = layout.cell_file(tables, "resources", archive.Cell(campaign, str(rate), variant))
        layout.write_rows(tables, path, rows, "resources")


def write_many(
    tables: Path, campaign: archive.Campaign, variants: list[str], rates: list[float], comparison: str | None = None
) -> None:
    """Conclusions on every variant at every load, made up: as many rows as such a page has, and as long ones."""
    random = np.random.default_rng(1)
    scope = {"comparison": comparison, "app": campaign.app, "host": campaign.host, "timestamps": [campaign.timestamp]}
    scope |= {"load_model": "open", "generator": "vegeta", "evidence": "requests", "confidence": 0.95}
    compared, added = [], []
    for rate in rates:
        for below, variant in pairwise(variants):
            for statistic in (*LATENCIES, "error_fraction"):
                ratio, value = float(random.lognormal(0.3, 0.2)), float(random.lognormal(13, 0.1))
                row = scope | {"rate": rate, "variant": variant, "statistic": statistic}
                interval = {"ratio": ratio, "ratio_low": ratio / 1.1234567, "ratio_high": ratio * 1.1234567}
                shift = value * (ratio - 1)
                interval |= {"shift": shift, "shift_low": shift - value / 9, "shift_high": shift + value / 9}
                runs = {"n_runs": 10, "baseline_n_runs": 10, "n_pairs": 10, "n_compared": 540, "runs_needed": 123}
                verdict = {
                    "verdict": "inconclusive",
                    **reasons.columns([Reason(reasons.MULTIPLE_COMPARISONS)]),
                }
                figures = {"baseline_value": value, "value": value * ratio, "p_adjusted": 0.123456789, "margin": 0.05}
                compared.append(row | {"baseline": variants[0]} | interval | runs | verdict | figures)
                if statistic in LATENCIES:
                    bounds = {"added_ns": shift, "added_low_ns": shift - value / 9, "added_high_ns": shift + value / 9}
                    warning = reasons.columns([Reason(reasons.BEYOND_KNEE, variant)], "warning")
                    added.append(row | {"below": below, "n_runs": 10} | warning | bounds)
    for table, rows in (("effects", compared), ("layers", added)):
        path = layout.scope_file(tables, table, comparison or campaign)
        layout.write_rows(tables, path, rows, table)


def write_thousand(folder: Path) -> Path:
    """The site of 1,000 campaigns of 5 apps on 8 hosts, without their pages; the newest of each have conclusions."""
    tables, reports = folder / "tables", folder / "reports"
    first = datetime.fromisoformat("2024-01-01T00:00:00+00:00")
    campaigns = []
    for number in range(1000):
        place = f"app-{number % 5}", f"host-{number % 8}", (first + timedelta(hours=20 * number)).isoformat()
        campaigns.append(archive.Campaign(folder / "archive", *place))
    newest = {(each.app, each.host): each for each in campaigns}
    for campaign in newest.values():
        made = Made(["plain", "mesh", "filter"], [100.0, 300.0], runs=2, requests=20)
        write(tables, campaign, made)
        write_many(tables, campaign, list(made.variants), list(made.rates))
        campaign.path.mkdir(parents=True)
        (campaign.path / archive.COMPLETION).touch()
    write_assets(reports)
    build_index(campaigns, tables, reports, VARIANTS, {})
    return reports
