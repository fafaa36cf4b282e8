"""Two layers upon the same variant, and both together: the page says whether what they add adds up."""

import re
from html import unescape

import numpy as np
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.scope import Settings
from loadstone.config.variants import Variants
from loadstone.report.site_layout import slug
from support import rawfiles
from support.rawfiles import lines, write_cell
from support.site import build_campaign, write_assets
from tables.tabling import Project

OVER = {"plain": (), "cache": ("plain",), "mesh": ("plain",), "both": ("cache", "mesh")}
ADDED_MS = {"plain": 0, "cache": 2, "mesh": 5, "both": 20}
VARIANTS = Variants({"demo": {name: {"label": name.title()} for name in OVER}})


def test_the_page_says_by_how_much_two_layers_take_more_together(tmp_path):
    project = Project(tmp_path)
    for place, (variant, added_ms) in enumerate(ADDED_MS.items()):
        files = {}
        for run in range(1, 6):
            random = np.random.default_rng([run, place])
            level_ns = (10 + added_ms) * 1e6 * np.exp(0.01 * random.normal())
            latencies = (level_ns * random.lognormal(0, 0.1, 300)).astype(np.int64)
            files[f"{run}.results.json.zst"] = rawfiles.compress(lines(latencies, 100.0))
        options = {"rate": "100", "duration": "3s", "timeout": "20s"}
        order = {"kind": "blocks", "positions": [1, 2, 3, 4, 5]}
        write_cell(project.archive, files, rate="100", variant=variant, testOptions=options, order=order, runs=5)
    project.convert()
    (campaign,) = archive.campaigns(project.archive)
    settings = Settings(order=tuple(OVER), over=OVER, confidence=0.9)
    analyse_campaign(campaign, project.tables, settings=settings)
    reports = tmp_path / "reports"
    write_assets(reports)
    build_campaign(campaign, project.tables, reports, VARIANTS, {"confidence": 0.9})
    html = (reports / "campaigns" / f"{slug(campaign)}.html").read_text()
    said = re.sub(r"\s+", " ", unescape(re.sub(r"<script.*?</script>|<[^>]+>", " ", html, flags=re.DOTALL)))
    row = project.row("SELECT * FROM interactions WHERE comparison IS NULL AND statistic = 'p50'")
    assert 11 < row["interaction_ns"] / 1e6 < 15 and row["warning"] == "not additive"
    low, high = (f"{row[f'interaction_{end}_ns'] / 1e6:.1f}" for end in ("low", "high"))
    sentence = (
        "Both over Plain: the overheads of Cache and Mesh are not additive. "
        f"Median: both take {row['interaction_ns'] / 1e6:.1f} ms more than their sum "
        f"(90 % interval [{low}, {high}] ms), at 100 requests/s."
    )
    # In the verdict, and where layers are.
    assert said.count(sentence) == 2 and "Are the overheads additive?" in said
    # The confidence is that of the configuration, everywhere.
    assert "at 90 % confidence" in said and "with its 90 % interval" in said and "95 %" not in said
