"""What people know of campaigns: the shipped catalogue against its source, and faults named clearly."""

import csv
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT
from loadstone.config.catalogue import Catalogue, load_catalogue
from loadstone.errors import LoadstoneError

SHIVER = ("bookinfo", "shiver")
EXCLUDED = {
    "2024-04-10T00:05:58-04:00": {"FAILED", "INVALID"},
    "2024-04-10T21:13:59-04:00": {"INVALID"},
    "2024-04-11T21:10:16-04:00": {"INCONSISTENT"},
    "2024-04-11T22:52:42-04:00": {"INCONSISTENT"},
    "2024-04-12T00:07:44-04:00": {"INCONSISTENT", "interrupted"},
    "2024-04-12T00:21:50-04:00": {"INVALID"},
    "2024-04-12T13:06:39-04:00": {"INVALID"},
}
DEFAULT = {"exclude": ["FAILED", "INVALID", "INCONSISTENT"], "include": []}
OUTLIERS = {
    ("bookinfo", "moone", "2024-04-09T20:14:12-04:00"): "2024-04-09T20:14:12-04:00/120/*/4.*",
    ("bookinfo", "moone", "2024-04-09T20:21:34-04:00"): "2024-04-09T20:21:34-04:00/100/*/5.*",
}


@pytest.fixture(scope="module")
def real() -> Catalogue:
    return load_catalogue(PROJECT / "config/catalogue.yaml")


@pytest.fixture(scope="module")
def source(shared: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """The recovered catalogue, one row per campaign."""
    with (shared / "prose/catalogue.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mention"] == "entry"]
    return {("bookinfo", row["host"], row["timestamp"]): row for row in rows}


# --- the shipped catalogue -------------------------------------------------------------------------------------------


def test_54_campaigns_on_two_hosts(real: Catalogue) -> None:
    hosts = [host for _, host, _ in real.entries]
    assert (hosts.count("shiver"), hosts.count("moone")) == (46, 8)


def test_every_campaign_of_the_source_with_its_tags(real: Catalogue, source: dict[Any, dict[str, str]]) -> None:
    assert set(real.entries) == set(source)
    ours = {"doubtful"}
    for key, row in source.items():
        tags = set(real.entry(key).get("tags", ())) - ours
        stated = set(filter(None, row["tags"].split(";")))
        if key[2] == "2025-03-31T20:08:07-04:00":
            stated = {"interrupted"}  # a correction: it stopped and nobody tagged it
        assert tags == stated, key


def test_what_was_measured_is_what_the_source_says(real: Catalogue, source: dict[Any, dict[str, str]]) -> None:
    for key, row in source.items():
        measured = real.entry(key)["measured"]
        assert measured["mode"] == row["mode"], key
        assert [f"{rate:g}" for rate in measured["rates"]] == row["rates"].split(";"), key
        if row["runs"]:
            assert measured["runs"] == int(row["runs"]), key
        renamed = [name.removesuffix("-939db60b") for name in measured["variants"]]
        assert renamed == row["variants"].split(";"), key
        files = [dump["file"] for dump in real.entry(key).get("trace_dumps", ())]
        dumps = (row["trace_dumps"], row["presidio_trace_dumps"])
        assert files == [name for names in dumps for name in names.split(";") if name], key


def test_every_contradiction_is_decided_with_a_reason(real: Catalogue, source: dict[Any, dict[str, str]]) -> None:
    telling = "conflict outlier attributes-not-in-seed duplicate timed-out cache-ineffective congestion renamed crashes"
    for key, row in source.items():
        if any(flag in row["derived_flags"] for flag in telling.split()):
            assert real.entry(key).get("corrections"), key
    mode = real.entry((*SHIVER, "2024-05-03T00:27:26-04:00"))
    assert mode["measured"]["mode"] == "vegeta"
    assert "250 ns" in mode["corrections"][0]["because"]


def test_what_is_left_out_by_default_is_what_its_owners_rejected(real: Catalogue) -> None:
    excluding = real.excluding(DEFAULT)
    whole, parts = {}, {}
    for key in real.entries:
        about = real.about(key, excluding)
        for row in about["tags"]:
            if row["tag"] in about["excluding"]:
                if "pattern" in row:
                    parts[key] = row["pattern"]
                else:
                    whole.setdefault(key, set()).add(row["tag"])
    assert {key[2]: tags for key, tags in whole.items()} == {
        timestamp: tags - {"interrupted"} for timestamp, tags in EXCLUDED.items()
    }
    assert parts == OUTLIERS


def test_a_tag_put_back_concerns_only_the_campaigns_that_carry_it(real: Catalogue) -> None:
    back = real.excluding(DEFAULT | {"include": ["INVALID"]})
    assert back == ["FAILED", "INCONSISTENT"]
    before = real.excluding(DEFAULT)
    changed = {key[2] for key in real.entries if real.about(key, before) != real.about(key, back)}
    assert changed == {timestamp for timestamp, tags in EXCLUDED.items() if "INVALID" in tags}


def test_campaigns_of_the_flat_layout_lack_no_completion_file(real: Catalogue) -> None:
    without = [key[2] for key in real.entries if not real.about(key, ())["completion_file"]]
    assert len(without) == 6
    assert max(without) == "2024-04-01T10:44:36-04:00"


# --- the archive against the catalogue -------------------------------------------------------------------------------


def test_absent_and_unlisted_campaigns(real: Catalogue) -> None:
    demo = ("demo", "here", "2026-11-21T11:00:00+00:00")
    assert real.absent([demo]) == []  # the catalogue of another archive
    present = list(real.entries)
    assert real.absent(present) == []
    missing = real.absent(present[1:])
    assert missing == [f"{'/'.join(present[0])} is in the catalogue, but not in the archive"]
    assert not real.is_unlisted(demo)
    assert not real.is_unlisted(present[0])
    assert real.is_unlisted((*SHIVER, "2026-01-01T00:00:00-05:00"))


def test_a_tag_of_an_absent_campaign_is_told() -> None:
    row = {"tag": "BAD", "app": "a", "host": "h", "timestamp": "2026-01-01T00:00:00Z"}
    catalogue = Catalogue({"tags": {"BAD": "bad"}, "tagged": [row, row | {"timestamp": "2027-01-01T00:00:00Z"}]})
    (told,) = catalogue.absent([("a", "h", "2026-01-01T00:00:00Z")])
    where = "a/h/2027-01-01T00:00:00Z"
    assert told == f"the catalogue tags {where} as BAD, but {where} is not in the archive"


@pytest.mark.parametrize(
    ("pattern", "concerned"),
    [
        ("2026-01-01T00:00:00Z/100/*/4.*", True),
        ("2026-01-02T00:00:00Z/100/*/4.*", False),
        ("2026-*/4.*", True),
        ("2027-*/4.*", False),
        ("*/100/*", True),
        ("[12]*", True),
    ],
)
def test_a_pattern_concerns_the_campaigns_that_it_can_match(pattern: str, concerned: bool) -> None:
    row = {"tag": "BAD", "app": "a", "host": "h", "pattern": pattern}
    catalogue = Catalogue({"tags": {"BAD": "bad"}, "tagged": [row]})
    assert catalogue.rows(("a", "h", "2026-01-01T00:00:00Z")) == ([row] if concerned else [])
    assert catalogue.rows(("a", "other", "2026-01-01T00:00:00Z")) == []


# --- faults ----------------------------------------------------------------------------------------------------------


GOOD = """
tags: {BAD: bad}
campaigns:
  a:
    h:
      2026-01-01T00:00:00Z: {purpose: p, tags: {BAD: null}}
tagged:
  - {tag: BAD, app: a, host: h, pattern: "*/1.*"}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "catalogue.yaml"
    file.write_text(text)
    return file


def test_a_timestamp_needs_no_quotes(tmp_path: Path) -> None:
    assert list(load_catalogue(write(tmp_path, GOOD)).entries) == [("a", "h", "2026-01-01T00:00:00Z")]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{BAD: null}", "{WORSE: x}", "'WORSE' is not among the tags (BAD)"),
        ("tag: BAD, app", "tag: WORSE, app", "'WORSE' is not among the tags"),
        ("purpose: p, ", "", "the key 'purpose' is missing"),
        ("purpose: p", "porpoise: p", "porpoise"),
        ("2026-01-01T00:00:00Z", "yesterday", "yesterday: is not an ISO 8601 time with an offset"),
        ("tagged:", "      2026-01-01T00:00:00Z: {purpose: q}\ntagged:", "'2026-01-01T00:00:00Z' appears twice"),
        ("tagged:", "      2026-01-01T01:00+01:00: {purpose: q}\ntagged:", "is the same moment as"),
        ("tagged:", 'tagged:\n  - {tag: BAD, app: a, host: h, pattern: "*/1.*"}', "repeats an earlier line"),
        ('pattern: "*/1.*"', "rate: 1", "matches no allowed form; expected one with"),
        ("tags: {BAD: bad}\n", "", "the key 'tags' is missing"),
    ],
)
def test_faults_are_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(LoadstoneError) as raised:
        load_catalogue(write(tmp_path, GOOD.replace(old, new, 1)))
    assert said in str(raised.value)
    assert "catalogue.yaml" in str(raised.value)


def test_a_lost_catalogue_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="does not exist"):
        load_catalogue(tmp_path / "catalogue.yaml")


@pytest.mark.parametrize("name", ["exclude", "include"])
def test_a_configured_tag_must_be_known(real: Catalogue, name: str) -> None:
    with pytest.raises(LoadstoneError, match=rf"tags.{name} in the configuration: unknown tag 'failed'"):
        real.excluding(DEFAULT | {name: ["failed"]})
