"""Links that lead out of the archive are named and followed nowhere, unless the configuration allows the place."""

import shutil
from pathlib import Path

import pytest
from loadstone import archive
from loadstone.archive import LEADS_OUT, LINKS, Campaign, extension, metadata, trace_dumps
from loadstone.collect import sweep
from loadstone.errors import LoadstoneError
from loadstone.publish import bundle
from loadstone.tables import verify
from support import rawfiles
from support.rawfiles import TIMESTAMP, lines, write_cell
from tables.tabling import Project

RUN = rawfiles.compress(lines([2_000_000] * 100))
SECRET = "the content of a file that is nobody's business"
CAMPAIGN, CELL = f"demo/here/{TIMESTAMP}", f"demo/here/{TIMESTAMP}/100/plain"


class Linked(Project):
    """An archive with a cell of one run, and a folder outside with what must stay there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.outside = folder / "etc"
        write_cell(self.archive, {"1.results.json.zst": RUN})
        write_cell(self.outside / "system/app", {"1.results.json.zst": RUN}, at="2026-02-02T00:00:00Z")
        (self.outside / "private.json").write_text(SECRET)
        (self.outside / "ssh").mkdir()
        (self.outside / "ssh/ssh_host_key").write_text(SECRET)

    def link(self, name: str, to: str = "") -> None:
        path = self.archive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.outside / to)

    def named(self) -> set[str]:
        """Everything that is said to lead out."""
        found = [*archive.outside(self.archive)]
        for campaign in archive.campaigns(self.archive):
            found += archive.scan_campaign(campaign).problems
        return {path for path, why in found if why == LEADS_OUT}

    def members(self) -> dict[str, bytes]:
        reports = self.tables.with_name("reports")
        reports.mkdir(exist_ok=True)
        (reports / "index.html").touch()
        everything = bundle.select([*archive.campaigns(self.archive)], {}, [], {})
        found = bundle.gather(everything, self.archive, self.tables, reports, {"analysis": {}, "tags": {}})
        return {member.name: Path(member.content).read_bytes() for member in found if isinstance(member.content, Path)}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Linked:
    monkeypatch.setenv(LINKS, "[]")
    return Linked(tmp_path)


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("system", "system"),
        ("demo/system", "ssh"),
        ("demo/here/etc", ""),
        (f"demo/here/{TIMESTAMP[:-1]}1", "system/app/demo/here/2026-02-02T00:00:00Z"),
        (f"{CAMPAIGN}/200", "system/app/demo/here/2026-02-02T00:00:00Z/100"),
        (f"{CAMPAIGN}/100/envoy", "system/app/demo/here/2026-02-02T00:00:00Z/100/plain"),
        (f"{CELL}/notes.json", "private.json"),
        (f"{CAMPAIGN}/_trace_dumps", "ssh"),
        (f"{CAMPAIGN}/_imported/0123456789abcdef.md", "private.json"),
        ("_trace_dumps/traces-1.json", "private.json"),
        (f"{CAMPAIGN}/extension.1.json", "private.json"),
    ],
)
def test_a_link_that_leads_out_is_named_and_not_followed(project: Linked, name: str, to: str) -> None:
    project.link(name, to)
    campaigns = [*archive.campaigns(project.archive)]
    assert [str(each) for each in campaigns] == [CAMPAIGN]
    assert project.named() == {name}
    assert trace_dumps.find(project.archive, campaigns, {}) == []
    project.make()
    assert [row["source"] for row in project.rows("SELECT source FROM runs")] == [f"{CELL}/1.results.json.zst"]
    found = verify.verify(project.archive, project.tables, lambda _: None)
    assert found.unreadable == [f"{name} {LEADS_OUT}"] and not found.is_intact
    with pytest.raises(LoadstoneError, match="can't be bundled") as error:
        project.members()
    assert f"  {name} {LEADS_OUT}" in str(error.value)
    assert SECRET not in "".join(path.read_text("latin-1") for path in project.tables.rglob("*") if path.is_file())


def test_metadata_and_plans_elsewhere_are_not_read(project: Linked) -> None:
    cell = archive.Cell(Campaign(project.archive, *CAMPAIGN.split("/")), "100", "plain")
    shutil.move(cell.path / "metadata.json", project.outside / "metadata.json")
    project.link(f"{CELL}/metadata.json", "metadata.json")
    project.link(f"{CAMPAIGN}/extension.1.json", "metadata.json")
    assert metadata.read_cell(cell).problems == [f"metadata.json {LEADS_OUT}"]
    assert extension.problems(cell.campaign) == [("extension.1.json", "can't be read")]
    project.make()
    assert project.row("SELECT excluded FROM runs") == {"excluded": True}


def test_results_elsewhere_are_collected_and_excluded(project: Linked) -> None:
    """Else they would be measured again."""
    shutil.copy(project.archive / CELL / "1.results.json.zst", project.outside / "results")
    project.link(f"{CELL}/2.results.json.zst", "results")
    (campaign,) = archive.campaigns(project.archive)
    (listing,) = archive.scan_campaign(campaign).cells
    assert listing.collected() == archive.scan_cell(listing.cell).collected() == {1, 2}
    before = archive.scan_campaign(campaign).digest()
    project.make()
    rows = project.rows("SELECT run, excluded, exclusion_reason, requests FROM runs ORDER BY run")
    assert [row["excluded"] for row in rows] == [False, True]
    assert LEADS_OUT in rows[1]["exclusion_reason"] and not rows[1]["requests"]
    assert project.row("SELECT count(*) AS n FROM requests") == {"n": 100}
    archive.allow_links([str(project.outside)])
    assert archive.scan_campaign(campaign).digest() != before
    project.make()
    assert project.row("SELECT count(*) AS n FROM requests") == {"n": 200}


def test_places_that_are_allowed_are_followed(project: Linked) -> None:
    project.link("system", "system/app/demo")
    project.link("demo/here/etc", "ssh")
    archive.allow_links([str(project.outside / "system")])
    assert [each.app for each in archive.campaigns(project.archive)] == ["demo", "system"]
    assert project.named() == {"demo/here/etc"}
    (project.archive / "demo/here/etc").unlink()
    assert sum(name.endswith("1.results.json.zst") for name in project.members()) == 2
    assert verify.verify(project.archive, project.tables, lambda _: None).is_intact


def test_the_archive_itself_and_links_within_it_may_be_links(project: Linked, tmp_path: Path) -> None:
    project.archive.rename(tmp_path / "disk")
    project.archive.symlink_to(tmp_path / "disk")
    (project.archive / "later").symlink_to("demo")
    (project.archive / CELL / "2.results.json.zst").symlink_to(tmp_path / "disk" / CELL / "1.results.json.zst")
    assert [each.app for each in archive.campaigns(project.archive)] == ["demo", "later"]
    assert project.named() == set()
    project.make()
    assert project.row("SELECT count(*) AS n FROM requests WHERE app = 'demo'") == {"n": 200}
    assert f"archive/{CELL}/2.results.json.zst" in project.members()
    assert verify.verify(project.archive, project.tables, lambda _: None).is_intact


def test_a_folder_without_timestamp_and_metadata_is_no_campaign(project: Linked) -> None:
    (project.archive / "demo/here/notes/100/plain").mkdir(parents=True)
    write_cell(project.archive, {"1.results.json.zst": RUN}, at="an old sweep")
    assert [each.timestamp for each in archive.campaigns(project.archive)] == ["an old sweep", TIMESTAMP]
    assert dict(archive.outside(project.archive)) == {
        "demo/here/notes": "is not a campaign: its name is not a timestamp, and there is no metadata.json in it"
    }


def test_nothing_is_opened_behind_a_link(project: Linked) -> None:
    project.link("shop", "ssh")
    campaign = Campaign(project.archive, "shop", "here", TIMESTAMP)
    with pytest.raises(LoadstoneError, match="leads out of the archive"):
        sweep._write_plan(campaign, {(100.0, "plain"): {}})
    assert [path.name for path in (project.outside / "ssh").iterdir()] == ["ssh_host_key"]
