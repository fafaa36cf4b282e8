"""Invariant 1: no flag, no lost record and no change of code or parameters attacks or removes a collected run."""

import os
import random
import shutil

import pytest
from loadstone.report import site_layout
from loadstone.report.output import shared_assets
from loadstone.tables import ANALYSED
from support.checkout import Checkout


def _forget_records(checkout: Checkout) -> None:
    shutil.rmtree(checkout.path / ".snakemake")


def _shuffle_mtimes(checkout: Checkout) -> None:
    shuffle = random.Random(1)
    for file in sorted(checkout.path.glob("results/**/*")):
        if file.is_file():
            instant = shuffle.randrange(1_000_000_000, 1_900_000_000)
            os.utime(file, (instant, instant))


def _change_parameters(checkout: Checkout) -> None:
    checkout.configure(sweep={"duration": "1s", "rates": [20], "timeout": "3s"}, target={"ready_timeout": "7s"})


def _edit_scripts(checkout: Checkout) -> None:
    for script in ["collect.py", "complete.py", "loadstone/collect/run.py"]:
        with (checkout.path / "scripts" / script).open("a") as file:
            file.write("\n# edited\n")
    rules = checkout.path / "rules/collect.smk"
    rules.write_text(rules.read_text().replace("attack=1", "attack=2"))


@pytest.fixture(
    scope="module",
    params=[lambda _: None, _forget_records, _shuffle_mtimes, _change_parameters, _edit_scripts],
    ids=["nothing", "records gone", "mtimes shuffled", "parameters changed", "scripts edited"],
)
def disturbed(request: pytest.FixtureRequest, collected, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of a collected sweep, for dry runs alone."""
    checkout = collected.copy(tmp_path_factory.mktemp("disturbed") / "checkout")
    request.param(checkout)
    return checkout


@pytest.mark.parametrize(
    "arguments",
    [(), ("-F",), ("-R", "collect"), ("-F", "attacks"), ("-R", "collect", "complete", "--", "attacks")],
    ids=lambda arguments: " ".join(arguments) or "plain",
)
def test_a_collected_run_is_never_scheduled_again(collected, disturbed, arguments) -> None:
    jobs = disturbed.jobs("--cores", "all", *arguments)
    assert "collect" not in jobs and "complete" not in jobs
    assert disturbed.contents() == collected.contents()


def test_forced_for_real_and_all_outputs_deleted(collected) -> None:
    before = collected.contents()
    collected.run("--cores", "all", "-F")
    assert collected.contents() == before
    collected.run("--cores", "all", "--delete-all-output")
    assert collected.contents() == before
    collected.run("--cores", "all")
    assert collected.contents() == before
    assert (collected.path / "reports/index.html").exists()


def test_the_marker_of_a_collected_run_asked_for_by_name_attacks_nothing(collected) -> None:
    before = collected.contents()
    campaign = collected.campaign.relative_to(collected.archive)
    output = collected.run("--cores", "all", "-f", f"results/.collected/{campaign}/50/plain/1.99")
    assert "already collected" in output
    assert collected.contents() == before


def test_an_up_to_date_checkout_has_nothing_to_do_and_a_dry_run_changes_nothing(collected) -> None:
    collected.run("--cores", "all")
    state = {file: file.stat().st_mtime_ns for file in collected.path.glob("r*s/**/*") if file.is_file()}
    assert set(collected.jobs("--cores", "all")) <= {"all"}
    assert {file: file.stat().st_mtime_ns for file in collected.path.glob("r*s/**/*") if file.is_file()} == state


def test_one_run_removed_by_its_owner_is_collected_again_alone(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    before = checkout.contents()
    removed = checkout.results()[1]
    removed.unlink()
    assert "collect" not in checkout.jobs("--cores", "all")  # closed: nothing of it is ever attacked
    (checkout.campaign / "completion_time.txt").unlink()
    assert checkout.jobs("--cores", "all")["collect"] == 1
    checkout.run("--cores", "all")
    after = checkout.contents()
    name = str(removed.relative_to(checkout.archive))
    assert after[name] != before[name]
    cell = name.rpartition("/")[0]
    untouched = {file: digest for file, digest in before.items() if not file.startswith(f"{cell}/")}
    untouched.pop(next(file for file in untouched if file.endswith("completion_time.txt")))
    assert untouched.items() <= after.items()
    leftovers = [file for file in after if "/_set_aside/" in file]
    assert len(leftovers) == 5  # what belonged to the removed results is kept, apart from the new run


def test_the_report_of_an_unfinished_sweep_attacks_nothing_and_says_what_is_missing(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    (checkout.campaign / "completion_time.txt").unlink()
    removed = checkout.results()[1]
    for file in removed.parent.glob(f"{removed.name.partition('.')[0]}.*"):
        file.unlink()
    before = checkout.contents()
    for target in ("report", "tables", "reports/index.html"):
        assert "collect" not in checkout.jobs("--cores", "all", target)
    output = checkout.run("--cores", "all", "report")
    assert "1 of 4 planned runs not collected" in output
    assert checkout.contents() == before
    assert "3 of 4" in (checkout.path / "reports/index.html").read_text()


def test_a_changed_chart_parameter_reads_no_raw_file_and_no_table_again(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    checkout.run("--cores", "all", "report")
    styles = checkout.path / "config/variants.yaml"
    styles.write_text(styles.read_text().replace("Direct", "Straight"))
    jobs = checkout.jobs("--cores", "all")
    assert set(jobs) <= {"campaign_page", "index", "all"}
    assert jobs["campaign_page"] == 1


def test_the_library_that_draws_is_not_made_again_with_the_sites_own_files(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    assets = checkout.path / "reports/assets"
    before = (assets / "vega.js").stat().st_ino
    (assets / "site.css").unlink()
    checkout.run("--cores", "1", "report")
    assert (assets / "site.css").is_file()
    assert (assets / "vega.js").stat().st_ino == before


def test_archives_in_turn_through_the_same_tables_keep_their_results(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    other = tmp_path / "other"
    shutil.copytree(checkout.archive / "demo", other / "second")
    for folder in [str(other), "results/archive"]:
        checkout.run("--cores", "all", "report", "--config", f"archive={folder}")
        assert "4 of 4" in (checkout.path / "reports/index.html").read_text()
    shutil.rmtree(checkout.path / ".snakemake")
    (checkout.path / "results/archive").rename(checkout.path / "results/away")
    output = checkout.run("--cores", "all", "report", expect=1)
    assert "does not exist" in output
    assert "4 of 4" in (checkout.path / "reports/index.html").read_text()


def test_a_run_copied_in_with_an_old_time_is_noticed(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    results = checkout.results()[0]
    added = results.with_name("9.results.json.zst")
    shutil.copy2(results, added)
    os.utime(added, (1_000_000_000, 1_000_000_000))
    assert checkout.jobs("--cores", "all", "report")["convert"] == 1


def test_whatever_is_deleted_of_tables_and_pages_is_made_again(collected, tmp_path) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    tables, reports = checkout.path / "results/tables", checkout.path / "reports"
    (part,) = (path.relative_to(tables / "runs") for path in (tables / "runs").rglob("*.parquet"))
    of_campaign = [tables / table / part for table in ANALYSED]
    pages = [reports / entry.path for entry in site_layout.ENTRIES if entry.name != "progress"]
    pages += reports.glob("*/*.html")
    shared = [reports / "assets" / name for name in ("vega.js", *shared_assets())]
    requests = sorted(tables.glob("requests/*/*/*/*.parquet"))
    expected = [tables / "effects" / part, reports / "quality.html", reports / "ask.html", shared[1], pages[-1]]
    for path in (*expected, *requests, tables / "facts" / part):
        aside = path.rename(path.with_name("aside"))
        assert checkout.jobs("--cores", "all").keys() - {"all"}, path
        aside.rename(path)
    removed = [*of_campaign, requests[0], tables / "facts" / part, tables / "history/part.parquet", *pages, *shared]
    before = {path: path.read_bytes() for path in removed}
    whole = requests[1].read_bytes()
    for path in removed:
        path.unlink()
    requests[1].write_bytes(whole[: len(whole) // 2])
    checkout.run("--cores", "all")
    assert {path: path.read_bytes() for path in removed} == before
    assert requests[1].read_bytes() == whole, "it was cut short"
    # Whoever adds a table to what is written of a campaign has it asked for too.
    by_convert = {"requests", "summaries", "resources", "planned", "facts", "problems"}
    assert {path.relative_to(tables).parts[0] for path in tables.rglob(str(part))} - by_convert == set(ANALYSED)
