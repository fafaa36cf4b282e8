"""What is declared about campaigns reaches jobs as parameters that concern their own campaign alone."""

from pathlib import Path

import pytest
import yaml
from conftest import PROJECT
from loadstone.archive import COMPLETION, LINKS
from loadstone.errors import LoadstoneError
from loadstone.workflow.declarations import Declarations
from loadstone.workflow.snapshot import Key, key_of
from support.rawfiles import write_cell

DAYS = [f"2026-11-0{day}T12:00:00+01:00" for day in (1, 2)]
CATALOGUE = {
    "tags": {"FAILED": "the run failed", "INVALID": "wrong", "INCONSISTENT": "unclear"},
    "campaigns": {"shop": {"here": {DAYS[0]: {"purpose": "first", "notes": ["slow disk"], "tags": {"FAILED": "x"}}}}},
}


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declarations:
    monkeypatch.chdir(tmp_path)
    for variant in ("mesh", "plain", "extra"):
        write_cell(tmp_path / "archive", {}, variant=variant, app="shop", at=DAYS[0])
    write_cell(tmp_path / "archive", {}, variant="plain", app="shop", at="2026-11-03T12:00:00+01:00")
    (tmp_path / "config").mkdir()
    variants = {"shop": {"plain": {}, "mesh": {"over": "plain"}}}
    for name, content in {"catalogue": CATALOGUE, "variants": variants, "comparisons": []}.items():
        (tmp_path / f"config/{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    config = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
    return Declarations({**config, "archive": "archive", "tables": "tables", "reports": "reports", "host": "here"})


def keys(declared: Declarations) -> list[Key]:
    return sorted(declared.snapshot.listings)


def test_a_word_about_one_campaign_is_no_parameter_of_another(declared: Declarations) -> None:
    first, second = keys(declared)
    assert [row["tag"] for row in declared.of_campaign(first)["tags"]] == ["FAILED"]
    assert declared.of_campaign(second)["tags"] == []
    assert declared.purposes() == [["shop", "here", DAYS[0], "first"]]
    assert declared.notes() == [["shop", "here", DAYS[0], "first slow disk"]]
    assert declared.settings_of_campaign(first)["over"] == {"plain": [], "mesh": ["plain"]}


def test_variants_have_pages_in_declared_order(declared: Declarations) -> None:
    assert list(declared.variant_pages.values()) == [("shop", "plain"), ("shop", "mesh"), ("shop", "extra")]
    first, second = keys(declared)
    assert declared.appearance([first])["seen"] == {"shop": ["extra"]}
    assert declared.appearance([second])["seen"] == {}
    assert declared.appearance()["seen"] == {"shop": ["extra"]}


def test_complete_campaigns_are_candidates_of_the_gate(declared: Declarations) -> None:
    assert declared.gate_candidates() == []
    campaign = declared.snapshot.listings[keys(declared)[0]].campaign
    (campaign.path / COMPLETION).touch()
    again = Declarations(declared.config)
    assert again.gate_candidates() == [list(key_of(campaign))]


def test_a_comparison_that_is_not_declared_is_named(declared: Declarations) -> None:
    assert declared.compared == {}
    with pytest.raises(LoadstoneError, match="declares no comparison none"):
        declared.comparison("none")


def test_only_pages_that_are_drawn_are_drawn_again(declared: Declarations) -> None:
    assert declared.pages_drawn == []
    page = declared.pages_with_charts[0]
    Path("reports/figures", page).mkdir(parents=True)
    assert declared.pages_drawn == [page]


def test_links_may_lead_to_declared_folders(declared: Declarations, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(LINKS, "[]")
    write_cell(tmp_path / "disk", {}, app="far", at=DAYS[0])
    (tmp_path / "archive/far").symlink_to(tmp_path / "disk/far")
    far = ("far", "here", DAYS[0])
    assert far not in Declarations(declared.config).snapshot.listings
    assert far in Declarations({**declared.config, "archive_links": ["disk"]}).snapshot.listings
    assert far not in Declarations(declared.config).snapshot.listings
