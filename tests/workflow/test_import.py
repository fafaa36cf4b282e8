"""`snakemake import` on real results of other tools, and what becomes of them in tables and report."""

import re
import socket
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from support.checkout import Checkout

COMMON = {"host": socket.gethostname()}  # as if measured here: even then they are never attacked


def entries(shared: Path) -> list[dict[str, Any]]:
    uds = COMMON | {"app": "uds", "timestamp": "2025-03-10T14:05:12-06:00", "duration": "5m", "zone": "-06:00"}
    (document,) = (shared / "seeds").glob("003*")
    return [
        COMMON
        | {
            "files": f"{shared}/artillery/scenario*.json",
            "match": r"scenario(?P<n>\d)",
            "app": "threescale",
            "timestamp": "2021-08-08T16:24:44+00:00",
            "variant": "scenario-{n}",
            "rate": 50,
            "duration": "10m",
        },
        uds
        | {
            "files": f"{shared}/uds/sidecar-k3d/*/*",
            "match": r"/(?P<rate>\d+)_(?P<pods>\d+)/",
            "variant": "pods-{pods}",
            "rate": "{rate}",
        },
        uds
        | {
            "files": str(document),
            "format": "vegeta.txt",
            "match": r"(?P<rate>\d+) requests per second loadbalanced between (?P<pods>\d+) Pods",
            "variant": "pods-{pods}",
            "rate": "{rate}",
        },
        uds
        | {
            "files": str(document),
            "format": "vegeta.txt",
            "match": r"(?P<rate>\d+) requests per second to a single Pod",
            "variant": "pods-1",
            "rate": "{rate}",
        },
        COMMON
        | {
            "files": f"{shared}/k6/*_setup*.txt",
            "match": r"pagination_(?P<cluster>\w+)_(?P<setup>setup\d)_",
            "app": "rancher",
            "timestamp": "2023-09-27T14:38:35-07:00",
            "variant": "{setup}-{cluster}",
            "rate": 3,
            "load_model": "closed",
        },
        COMMON
        | {
            "files": f"{shared}/hey/*.hdr.csv",
            "app": "threescale",
            "timestamp": "2021-08-10T09:00:00+00:00",
            "variant": "callouts",
            "rate": 50,
            "generator": "hey",
        },
    ]


@pytest.fixture(scope="module")
def imported(pristine: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(pristine, tmp_path_factory.mktemp("imported") / "checkout")
    (checkout.path / "config/imports.yaml").write_text(yaml.safe_dump(entries(shared)))
    before = sorted(path for path in checkout.path.rglob("*") if ".snakemake" not in path.parts)
    said = checkout.run("-n", "import")
    assert sorted(path for path in checkout.path.rglob("*") if ".snakemake" not in path.parts) == before
    assert "threescale/" in said and "scenario-3/1.artillery.json from" in said
    assert "30 files imported, 0 were in the archive already: 14 runs of 4 campaigns" in checkout.run("-c1", "import")
    checkout.run("--cores", "all", "report")
    return checkout


def rows(checkout: Checkout, query: str) -> list[tuple]:
    with duckdb.connect(str(checkout.path / "results/loadstone.duckdb"), read_only=True) as connection:
        connection.execute(f"SET file_search_path = '{checkout.path}'")
        return connection.execute(query).fetchall()


def test_every_source_is_in_the_archive_byte_by_byte(imported, shared):
    for number in (1, 3):
        (found,) = imported.archive.glob(f"threescale/*/*/50/scenario-{number}/1.artillery.json")
        assert found.read_bytes() == (shared / f"artillery/scenario{number}.json").read_bytes()
    assert len(list(imported.archive.glob("uds/*/*/*/*/1.resource-usage.log"))) == 8
    imported.run("-c1", "verify")


def test_tables_tell_the_runs_apart(imported):
    query = "SELECT app, generator, load_model, evidence, count(*) FROM runs GROUP BY ALL ORDER BY ALL"
    assert rows(imported, query) == [
        ("rancher", "k6", "closed", "summary", 3),
        ("threescale", "artillery", "open", "raw", 2),
        ("threescale", "hey", "closed", "histogram", 1),
        ("uds", "vegeta", "open", "summary", 8),
    ]
    assert rows(imported, "SELECT count(*) FROM runs WHERE excluded") == [(0,)]
    assert rows(imported, "SELECT problem FROM problems WHERE run IS NOT NULL") == []
    assert rows(imported, "SELECT DISTINCT description FROM runs WHERE variant = 'pods-1' AND rate = 20") == [
        ("20 requests per second to a single Pod",)
    ]


def test_published_figures_come_back(imported):
    published = {"scenario-1": (1, 90, 2, 3, 3), "scenario-3": (1, 16, 2, 2, 3)}
    for variant, figures in published.items():
        query = (
            "SELECT min_ns / 1e6, max_ns / 1e6, p50_ns / 1e6, p95_ns / 1e6, p99_ns / 1e6 "
            f"FROM summaries WHERE variant = '{variant}'"
        )
        assert rows(imported, query) == [figures]
    query = "SELECT p99_ns / 1e6, requests FROM summaries WHERE variant = 'pods-1' AND rate = 20"
    assert rows(imported, query) == [(18.509, 6000)]
    query = (
        "SELECT text FROM figures WHERE variant = 'pods-1' AND rate = 20 AND source LIKE '%resource-summary.txt' "
        "AND section || metric || statistic LIKE '%nginx%' ORDER BY text"
    )
    assert ("25.59m",) in rows(imported, query)
    usage = (
        "SELECT round(cpu_mean_millicores, 2) FROM resource_usage "
        "WHERE variant = 'pods-1' AND rate = 20 AND name = 'nginx'"
    )
    assert rows(imported, usage) == [(25.59,)]
    assert rows(imported, 'SELECT sum("count") FROM histograms') == [(1_000_000,)]


def test_each_campaign_has_a_page_and_none_is_attacked(imported):
    assert len(list((imported.path / "reports/campaigns").glob("*.html"))) == 4
    assert not {"collect", "complete"} & imported.jobs("all").keys()


def test_again_nothing_changes_and_no_table_is_made_anew(imported):
    before = imported.contents()
    said = imported.run("-c1", "import")
    assert re.search(r"^0 files imported, 30 were in the archive already: 14 runs", said, re.MULTILINE)
    assert imported.contents() == before
    assert "convert" not in imported.jobs("report")


def test_a_refusal_is_words_and_leaves_the_archive_alone(imported):
    file = imported.path / "config/imports.yaml"
    good, before = file.read_text(), imported.contents()
    try:
        file.write_text(yaml.safe_dump([yaml.safe_load(good)[0] | {"timestamp": "2021-08-08T16:24:44"}]))
        for arguments in (("-n", "import"), ("-c1", "import")):
            said = imported.run(*arguments, expect=1)
            assert "config/imports.yaml, entry 1:" in said and "is not a time with an offset" in said
            assert "Traceback" not in said
    finally:
        file.write_text(good)
    assert imported.contents() == before
