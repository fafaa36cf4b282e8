"""The archive's layout: names are read from the left, campaigns sort by instant, nothing is dropped silently."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loadstone import archive
from loadstone.archive import Campaign, Cell, decode, encode, parse_name, scan_campaign
from loadstone.report.site_layout import slug, variant_slug
from snakemake.io import PeriodicityDetector
from support.rawfiles import write_cell

HOSTILE = ["a b", "a'b\"c", "<script>alert(1)</script>", "{run}", "a=b%20c", "*?[x]", "ünïcode", "-rf", "a;b&c", "x\ny"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1.results.json.zst", (1, "main", "results", "results.json")),
        ("10.results.bin", (10, "main", "results", "results.bin")),
        ("2.results.csv.zst", (2, "main", "results", "results.csv")),
        ("1.presidio.results.json.zst", (1, "presidio", "results", "results.json")),
        ("1.presidio.summary.json", (1, "presidio", "summary", "summary.json")),
        ("3.req_2.presidio.warmups.json.zst", (3, "presidio.req_2", "warmups", "warmups.json")),
        ("1.resources.csv.zst", (1, "main", "resources", "resources.csv")),
        ("1.run.json", (1, "main", "run", "run.json")),
        ("1.sha256", (1, "main", "sha256", "sha256")),
        ("12.failure.3.json", (12, "main", "failure", "json")),
        ("1.artillery.json", (1, "main", "results", "artillery.json")),
        ("1.k6.json.zst", (1, "main", "results", "k6.json")),
        ("1.k6.csv", (1, "main", "results", "k6.csv")),
        ("1.hey.csv.zst", (1, "main", "results", "hey.csv")),
        ("1.ab.tsv", (1, "main", "results", "ab.tsv")),
        ("1.k6.summary.json", (1, "main", "summary", "k6.summary.json")),
        ("1.k6.txt", (1, "main", "summary", "k6.txt")),
        ("4.vegeta.txt", (4, "main", "summary", "vegeta.txt")),
        ("1.hdr.csv.zst", (1, "main", "summary", "hdr.csv")),
        ("1.resource-usage.log", (1, "main", "resources", "resource-usage.log")),
        ("1.resource-summary.txt.zst", (1, "main", "resources", "resource-summary.txt")),
        ("1.figures.csv", (1, "main", "resources", "figures.csv")),
    ],
)
def test_file_names_are_read_from_the_left(name: str, expected: tuple) -> None:
    parsed = parse_name(name)
    assert (parsed.run, parsed.stream, parsed.kind, parsed.format) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        "metadata.json",
        "0.results.json",
        "01.results.json",
        "a.results.json",
        "1.results.txt",
        "1.results.json.gz",
        "1.failure.json",
        "1.failure.0.json",
        "1.failure.01.json",
        "1.failure.1.json.zst",
        "0.artillery.json",
        "1.artillery.json.gz",
        "1.artilleryXjson",
        "1.presidio.vegeta.txt",
        "1.k6.results.txt",
    ],
)
def test_other_names_are_no_files_of_a_run(name: str) -> None:
    assert parse_name(name) is None


@given(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1))
@example("\udcff bytes that are no text")
@example("名" * 80)
@example("{run} <b> *?[x] 'it' \"says\" 5%")
def test_any_folder_name_survives_encoding(name: str) -> None:
    part = encode(name)
    assert decode(part) == name
    assert not set(part) & set("/{}<>*?[]'\"\n\\")
    assert part not in (".", "..")


@pytest.mark.parametrize(
    "name",
    ["x" * 20, "x" * 200, "v-" + "ab" * 20, "é" * 20, "名" * 60, "{" * 20, "{}" * 30, "\udcff" * 20, "=" + "D" * 19],
)
def test_snakemake_takes_names_that_end_with_repetitions(name: str) -> None:
    part = encode(name)
    assert decode(part) == name
    assert PeriodicityDetector().is_periodic(part) is None
    assert PeriodicityDetector().is_periodic(variant_slug("app", name)) is None


@pytest.mark.parametrize("name", HOSTILE)
def test_slugs_are_plain_and_differ(name: str, tmp_path: Path) -> None:
    one, other = (slug(Campaign(tmp_path, app, "host", "2026-01-01T00:00:00Z")) for app in (name, name + "_"))
    assert one != other
    assert all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in one + other)


def test_links_that_lead_round_in_circles_are_no_folders(tmp_path: Path) -> None:
    cell = write_cell(tmp_path / "archive", {"1.results.json.zst": b""}).path
    for depth, folder in enumerate([cell.parent, *cell.parent.parents][:5]):
        (folder / "itself").symlink_to(".", target_is_directory=True)
        (folder / "circle").symlink_to("circle")
        (folder / "up").symlink_to("../" * (4 - depth) or ".", target_is_directory=True)
    (found,) = archive.campaigns(tmp_path / "archive")
    listing = scan_campaign(found)
    assert [each.cell.path for each in listing.cells] == [cell]
    named = [path for path, _ in (*listing.problems, *archive.outside(tmp_path / "archive"))]
    assert len(named) == len(set(named)) == 15


def test_slugs_differ_where_capitals_are_not_told_from_small_letters(tmp_path: Path) -> None:
    keys = [("shop", "lab"), ("Shop", "lab"), ("shop", "LAB"), ("SHOP", "lab")]
    times = ["2026-01-01T00:00:00Z", "2026-01-01t00:00:00z"]
    slugs = [slug(Campaign(tmp_path, *key, time)) for key in keys for time in times]
    assert len({each.casefold() for each in slugs}) == len(slugs)
    assert slugs[0] == "shop_lab_2026-01-01T000000Z"


def test_slugs_differ_where_timestamps_do_in_colons_alone(tmp_path: Path) -> None:
    times = [
        "2020-01-01T00:00:00+00:00",
        "2020-01-01T000000+0000",
        "2020-01-01T00:00:00+0000",
        "2020-01-01T00:0000+00:00",
        "2020-01-01T00:00+00:00",
        "2020-01-01T0000+00:00",
    ]
    slugs = [slug(Campaign(tmp_path, "shop", "lab", time)) for time in times]
    slugs += [slug(Campaign(tmp_path, app, "lab", times[0])) for app in ("a+b", "apb")]
    assert len(set(slugs)) == len(slugs)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2020-01-01T00:00:00+00:00", "shop_lab_2020-01-01T000000p0000"),
        ("2024-04-17T23:03:57-04:00", "shop_lab_2024-04-17T230357-0400"),
        ("2025-01-02T11:48-05:00", "shop_lab_2025-01-02T1148-0500"),
        ("2025-01-02T11:48:00.123Z", "shop_lab_2025-01-02T114800.123Z"),
    ],
)
def test_slugs_of_usual_campaigns_have_no_hash(timestamp: str, expected: str, tmp_path: Path) -> None:
    assert slug(Campaign(tmp_path, "shop", "lab", timestamp)) == expected


def test_digits_of_other_scripts_are_no_rates_and_no_runs(tmp_path: Path) -> None:
    assert archive.parse_rate("٣") is None
    assert archive.parse_rate("1٣") is None
    assert parse_name("1٣.results.json.zst") is None
    (tmp_path / "app" / "host" / "2026-01-01T00:00:00Z" / "٣" / "plain").mkdir(parents=True)
    (campaign,) = archive.campaigns(tmp_path)
    assert not scan_campaign(campaign).cells


def test_campaigns_sort_by_instant_not_by_text(tmp_path: Path) -> None:
    times = ["2025-01-02T11:48-05:00", "2024-04-17T23:03:57-04:00", "2024-04-18T02:00:00+00:00", "no time"]
    for time in times:
        (tmp_path / "app" / "host" / time).mkdir(parents=True)
    write_cell(tmp_path, {}, app="app", host="host", at="no time")
    (tmp_path / "app" / "_graphs" / "x").mkdir(parents=True)
    found = [campaign.timestamp for campaign in archive.campaigns(tmp_path)]
    assert found == ["no time", "2024-04-18T02:00:00+00:00", "2024-04-17T23:03:57-04:00", "2025-01-02T11:48-05:00"]


def test_a_scan_lists_runs_in_order_and_names_what_it_does_not_understand(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, "app", "host", "2026-01-01T00:00:00Z")
    cell = campaign.path / "100" / "plain"
    cell.mkdir(parents=True)
    for name in ["10.results.json.zst", "2.results.json.zst", "metadata.json", "notes.txt"]:
        (cell / name).touch()
    (campaign.path / "fast").mkdir()
    (campaign.path / "100" / "file").touch()
    (cell / "3.results.json.zst").symlink_to(tmp_path / "nowhere")
    listing = scan_campaign(campaign)
    assert listing.cells[0].runs() == [2, 3, 10]
    problems = dict(listing.problems)
    prefix = "app/host/2026-01-01T00:00:00Z"
    assert set(problems) == {
        f"{prefix}/fast",
        f"{prefix}/100/file",
        f"{prefix}/100/plain/notes.txt",
        f"{prefix}/100/plain/3.results.json.zst",
    }
    assert listing.cells[0].collected() == {2, 3, 10}  # what a link leads to may only be away for the moment


def test_a_record_of_a_failure_is_known_and_makes_no_run(tmp_path: Path) -> None:
    cell = Cell(Campaign(tmp_path, "app", "host", "2026-01-01T00:00:00Z"), "100", "plain")
    cell.path.mkdir(parents=True)
    for run, nth in [(1, 2), (1, 10), (1, 1), (7, 1)]:
        cell.failure(run, nth).touch()
    listing = scan_campaign(cell.campaign)
    assert listing.problems == [] and listing.cells[0].strays == []
    assert listing.cells[0].runs() == [] and listing.cells[0].collected() == set()
    found = {run: [file.name for file in files] for run, files in listing.cells[0].failures().items()}
    assert found == {1: ["1.failure.1.json", "1.failure.2.json", "1.failure.10.json"], 7: ["7.failure.1.json"]}


def test_the_digest_changes_with_every_file_and_only_then(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, "app", "host", "2026-01-01T00:00:00Z")
    cell = Cell(campaign, "100", "plain")
    cell.path.mkdir(parents=True)
    seen = {scan_campaign(campaign).digest()}
    (cell.path / ".1.part").mkdir()
    assert scan_campaign(campaign).digest() in seen
    for change in [
        lambda: cell.results(1).write_text("a"),
        lambda: cell.results(1).write_text("bc"),
        lambda: os.utime(cell.results(1), (1, 1)),
        lambda: cell.failure(1, 1).write_text("{}"),
        lambda: (cell.path / "metadata.json").write_text("{}"),
        (campaign.path / archive.COMPLETION).touch,
        cell.results(1).unlink,
    ]:
        change()
        digest = scan_campaign(campaign).digest()
        assert digest not in seen
        seen.add(digest)
