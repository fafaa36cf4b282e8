"""Publishing, figures for papers and Snakemake's own report, through the workflow."""

import shutil
import subprocess
import zipfile

import pytest
from support.sites import BranchReader, files_of, git, read_as_reader

PAGES = "reports/figures/campaigns"


@pytest.fixture(scope="module")
def checkout(collected, tmp_path_factory):
    """A collected sweep whose copied files have been looked at once, and a remote for it."""
    collected.run("--cores", "all", "report")
    remote = BranchReader(tmp_path_factory.mktemp("remote"))
    git(collected.path, "init", "--quiet", "--initial-branch=main")
    git(collected.path, "remote", "add", "origin", remote.remote)
    collected.remote = remote
    return collected


def site_of(checkout) -> dict[str, bytes]:
    """The published part of what lies in reports/."""
    found = files_of(checkout.path / "reports")
    return {name: content for name, content in found.items() if name != "README.md" and not name.startswith(".made/")}


def test_publishing_needs_a_destination(checkout) -> None:
    for dry in ([], ["-n"]):
        output = checkout.run("--cores", "1", *dry, "publish", expect=1)
        assert "publish is missing in" in output and "Traceback" not in output


def test_the_site_is_published_once_and_what_is_open_is_not_attacked(checkout, tmp_path) -> None:
    checkout.replace(publish={"to": "folder", "path": str(tmp_path / "www")})
    for result in checkout.campaign.glob("50/envoy/2.*"):
        result.unlink()
    (checkout.campaign / "completion_time.txt").unlink()
    before = checkout.contents()
    output = checkout.run("--cores", "1", "-n", "publish")
    assert "Would publish the site as it is now" in output and "to transfer (" in output
    assert not (tmp_path / "www").exists()
    checkout.run("--cores", "1", "publish")
    assert read_as_reader(files_of(tmp_path / "www")) == site_of(checkout)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "www").rglob("*")}
    assert "already has this site" in checkout.run("--cores", "1", "publish")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "www").rglob("*")} == stamps
    assert checkout.contents() == before


def test_what_is_not_there_or_was_cut_short_is_made_before_the_site_is_published(checkout, tmp_path) -> None:
    checkout.replace(publish={"to": "folder", "path": str(tmp_path / "www")})
    before = site_of(checkout)
    for name in ("campaigns/*/50.js", "methods.html", "assets/site.css"):
        next((checkout.path / "reports").glob(name)).unlink()
    for name in ("assets/chart.js", "ask/cells.js", "variants/*.html"):
        path = next((checkout.path / "reports").glob(name))
        path.write_bytes(path.read_bytes()[:-9])
    shutil.rmtree(checkout.path / ".snakemake/metadata")  # neither its records nor times are needed for that
    checkout.run("--cores", "1", "publish")
    assert read_as_reader(files_of(tmp_path / "www")) == before
    assert set(checkout.jobs("--cores", "1", "report")) <= {"report"}


def test_to_a_branch_of_the_checkouts_remote(checkout) -> None:
    checkout.replace(publish={"to": "branch"})
    checkout.run("--cores", "1", "publish")
    assert read_as_reader(checkout.remote.files()) == site_of(checkout)
    assert git(checkout.path, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.long
def test_figures_are_made_once_for_their_page(checkout) -> None:
    checkout.replace(figures={"width": "17cm", "font_size": 9})
    checkout.run("--cores", "all", "figures")
    (folder,) = (checkout.path / PAGES).iterdir()
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {"latency-p50.pdf", "latency-p50.svg", "latency-p99.svg", "time-50-p50.pdf"} <= made.keys()
    assert b'width="17cm"' in made["latency-p50.svg"]
    assert set(checkout.jobs("--cores", "all", "figures")) <= {"figures"}
    (folder / "latency-p50.svg").unlink()
    assert checkout.jobs("--cores", "all", "figures") == {"request_rebuild": 1, "page_figures": 1, "figures": 1}
    checkout.replace(figures={"width": "8.5cm"})
    jobs = checkout.jobs("--cores", "all", "figures")
    assert jobs == {"request_rebuild": 1, "page_figures": 3, "figures": 1}  # of the campaign and two variants
    # Nor are figures published beside pages that they were not drawn from.
    checkout.replace(publish={"to": "folder", "path": "www"}, figures={"width": "8.5cm"})
    assert checkout.jobs("--cores", "1", "publish") == {"request_rebuild": 1, "page_figures": 3, "publish": 1}
    page = f"{PAGES}/{folder.name}"
    checkout.run("--cores", "all", page)
    assert b'width="8.5cm"' in (folder / "latency-p50.svg").read_bytes()
    checkout.replace(figures={"width": "17cm", "font_size": 9})
    checkout.run("--cores", "all", page)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made


def test_snakemakes_own_report_holds_the_same_pictures(checkout, tmp_path) -> None:
    # Some were never drawn, as after a plain `snakemake`; others were drawn for another width. Both are drawn for it.
    shutil.rmtree(checkout.path / "reports/figures/variants", ignore_errors=True)
    checkout.replace(figures={"width": "12cm"})
    # Without a network, so that what it fetches from elsewhere would be missed.
    command = [checkout.path / ".venv/bin/snakemake", "--cores", "all", "report", "--report-after-run"]
    command += ["--report", tmp_path / "report.zip"]
    done = subprocess.run(
        ["unshare", "--net", *command] if _may_unshare() else command,
        cwd=checkout.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        names = archive.namelist()
        page = next(name for name in names if name.endswith("report.html"))
        texts = archive.read(page).decode() + "".join(
            archive.read(name).decode("utf-8", "replace") for name in names if name.endswith(".js")
        )
        pictures = {archive.read(name) for name in names if name.endswith(".svg")}
    (folder,) = (checkout.path / PAGES).iterdir()
    drawn = {path.read_bytes() for path in folder.glob("*.svg")}
    assert drawn <= pictures
    assert all(b'width="12cm"' in picture for picture in drawn)
    assert "The median of latency at each load" in texts
    assert "how many runs the figure is based on" in texts
    assert set(checkout.jobs("--cores", "all", "figures")) <= {"figures"}


def _may_unshare() -> bool:
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0
