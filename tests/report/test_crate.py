"""The RO-Crates of pages and site: what the specification's own validator says, and that they tell the truth."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import rocrate
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.config.variants import Variants
from loadstone.errors import LoadstoneError
from loadstone.publish.site import files
from loadstone.report import reproducibility, site_layout
from loadstone.tables.convert import convert_campaign
from rocrate_validator import models, services
from rocrate_validator.utils import document_loader
from support import rawfiles, site
from support.rawfiles import compress
from support.site import write_assets

OPTIONS = {
    "title": "Proxies </script><b>",
    "license": "https://spdx.org/licenses/CC-BY-4.0",
    "authors": [{"name": "Ada Ä.", "orcid": "0000-0002-1825-0097", "affiliation": "Here"}, {"name": "Bo"}],
    "published": "2026-12-01",
    "doi": "10.5281/zenodo.1234567",
}
CONTEXT = json.loads((Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_text())
# They fetch the context to see whether it exists; there is no network here.
FETCHING = ["ro-crate-1.2_4.1", "ro-crate-1.2_4.2"]
WITHOUT_LICENSE = {"The Root Data Entity MUST have a `license` property (as specified by schema.org)."}

pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph:DeprecationWarning")  # the validator's own


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_loader, "_fetch_json_ld", lambda url: CONTEXT)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[archive.Campaign]]:
    """Tables of two small campaigns."""
    folder = tmp_path_factory.mktemp("project")
    for at in ("2026-11-20T10:00:00+01:00", "2026-11-21T12:00:00+01:00"):
        for variant in ("plain", "envoy <b>"):
            lines = rawfiles.lines([1_000_000 + 1000 * n for n in range(100)])
            files = {f"{run}.results.json.zst": compress(lines) for run in (1, 2)}
            tools = {"envoy": "1.40.0", "vegeta": "12.13.0"}
            rawfiles.write_cell(folder / "archive", files, variant=variant, at=at, tools=tools)
    campaigns = list(archive.campaigns(folder / "archive"))
    for campaign in campaigns:
        convert_campaign(campaign, folder / "tables", lambda _, name: name, 1, lambda _: None)
        analyse_campaign(campaign, folder / "tables")
    return folder, campaigns


def built(project, options, reports: Path) -> Path:
    folder, campaigns = project
    for campaign in campaigns:
        site.build_campaign(campaign, folder / "tables", reports, Variants({}), options)
    site.build_index(campaigns, folder / "tables", reports, Variants({}), options)
    return reports


@pytest.fixture(scope="module")
def published(project, tmp_path_factory) -> Path:
    """The site with everything configured; tests that change it make a copy."""
    reports = built(project, OPTIONS, tmp_path_factory.mktemp("published") / "site")
    write_assets(reports)
    return reports


@pytest.fixture
def reports(published, tmp_path) -> Path:
    return shutil.copytree(published, tmp_path / "site")


def issues(folder: Path) -> set[str]:
    """What the validator finds that the specification requires, of the folder as a crate."""
    settings = models.ValidationSettings(
        rocrate_uri=str(folder),
        profile_identifier="ro-crate-1.2",
        requirement_severity=models.Severity.REQUIRED,
        skip_checks=FETCHING,
        skip_availability_check=True,
    )
    return {issue.message for issue in services.validate(settings).get_issues()}


def of_page(page: Path, folder: Path) -> Path:
    """A page's crate as a folder of its own, as the validator wants it."""
    folder.mkdir()
    for path in (page, page.with_suffix(".sha256"), page.with_suffix(".png")):
        shutil.copy(path, folder)
    shutil.copytree(page.with_suffix(""), folder / page.stem)
    shutil.copy(page.with_name(f"{page.stem}{reproducibility.CRATE_SUFFIX}"), folder / "ro-crate-metadata.json")
    return folder


def graph(path: Path) -> dict[str, dict]:
    return {entity["@id"]: entity for entity in json.loads(path.read_text())["@graph"]}


def test_the_specification_is_met(published) -> None:
    assert issues(published) == set()


def test_what_nobody_configured_is_missing_and_not_made_up(project, tmp_path) -> None:
    reports = built(project, {}, tmp_path / "site")
    page = min((reports / "campaigns").glob("*.html"))
    assert issues(of_page(page, tmp_path / "page")) == WITHOUT_LICENSE  # which shows that the validator finds something
    root = graph(reports / site_layout.CRATE)["./"]
    assert not {"license", "author", "identifier", "cite-as"} & root.keys()
    assert root["datePublished"] == "2026-11-21"


def test_authors_license_and_address_are_the_configurations(published) -> None:
    found = graph(published / site_layout.CRATE)
    root = found["./"]
    assert root["name"] == OPTIONS["title"] and root["datePublished"] == "2026-12-01"
    assert root["license"] == {"@id": OPTIONS["license"]}
    assert [found[author["@id"]]["name"] for author in root["author"]] == ["Ada Ä.", "Bo"]
    assert root["cite-as"] == "https://doi.org/10.5281/zenodo.1234567"


def test_every_checksum_is_true_and_every_result_and_table_is_there(project, published) -> None:
    folder, _ = project
    page = min((published / "campaigns").glob("*.html"))
    found = graph(page.with_name(f"{page.stem}{reproducibility.CRATE_SUFFIX}"))
    based_on = [found[each["@id"]] for each in found["./"]["isBasedOn"]]
    for entity in based_on:
        root = folder if entity["name"].startswith("tables/") else folder / "archive"
        assert hashlib.sha256((root / entity["name"]).read_bytes()).hexdigest() == entity["sha256"]
    names = {entity["name"] for entity in based_on}
    assert sum(name.endswith("results.json.zst") for name in names) == 4
    assert any(name.startswith("tables/cells/") for name in names)
    for entity in (found[each["@id"]] for each in found["./"]["hasPart"]):
        assert hashlib.sha256((page.parent / entity["@id"]).read_bytes()).hexdigest() == entity["sha256"]
    assert {"envoy 1.40.0", "vegeta 12.13.0"} <= {found[each["@id"]]["name"] for each in found["#build"]["instrument"]}
    assert f'href="{page.stem}{reproducibility.CRATE_SUFFIX}"' in page.read_text()


def test_the_site_leads_to_the_crates_of_its_pages(published) -> None:
    found = graph(published / site_layout.CRATE)
    for page in (published / "campaigns").glob("*.html"):
        entity = found[f"campaigns/{page.name}"]
        assert (published / entity["subjectOf"]["@id"]).is_file()
        assert hashlib.sha256(page.read_bytes()).hexdigest() == entity["sha256"]


def test_crates_of_pages_that_went_away_go_too(project, reports) -> None:
    folder, campaigns = project
    site.build_index(campaigns[:1], folder / "tables", reports, Variants({}), OPTIONS)
    assert len(list((reports / "campaigns").glob(f"*{reproducibility.CRATE_SUFFIX}"))) == 1


@pytest.mark.parametrize("lost", ["campaigns/*/100.js", "campaigns/*.sha256", "assets/chart.js"])
def test_a_site_that_lost_something_is_not_whole(reports, lost) -> None:
    files.check_complete(files.of_site(reports))
    path = min(reports.glob(lost))
    content = path.read_bytes()
    path.unlink()
    not_whole(reports, path)
    if lost.startswith("campaigns/"):  # of assets pages know the name alone
        path.write_bytes(content[:-9])
        not_whole(reports, path)


def not_whole(reports: Path, path: Path) -> None:
    with pytest.raises(LoadstoneError, match="nothing was published") as told:
        files.check_complete(files.of_site(reports))
    name = path.relative_to(reports).as_posix()
    assert name in str(told.value)
    assert "Run `snakemake" in str(told.value) or f"Remove {name} from the reports folder" in str(told.value)
    # What is missing is made again by itself; what has only changed has to be removed for that.
    assert path.is_file() == ("Remove" in str(told.value))
