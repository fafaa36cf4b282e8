"""The catalogue in the real workflow: what is rejected is out of everything, and comes back without a raw file read."""

import json

import duckdb
import pytest
import yaml
from support import rawfiles

APP, HOST, TIMESTAMP = "bookinfo", "shiver", "2024-04-10T21:13:59-04:00"  # catalogued as INVALID
OTHER = "2024-04-14T00:54:06-04:00"


def write_old_campaign(archive, timestamp: str, folders: list[str]) -> None:
    """A campaign as it was written in April 2024: no version, no plan."""
    for folder in folders:
        cell = archive / APP / HOST / timestamp / "100" / folder
        cell.mkdir(parents=True)
        metadata = {
            "timestamp": timestamp,
            "resultsFileSuffix": ".results.json.zst",
            "summaryFileSuffix": ".summary.json",
            "testOptions": {"duration": "1s", "rate": "100", "includesWarmup": True, "warmupRate": "100"},
            "workloadInfo": {"variant": folder, "hostname": HOST, "test_replicas": 10},
        }
        (cell / "metadata.json").write_text(json.dumps(metadata))
        for run in (1, 2):
            (cell / f"{run}.results.json.zst").write_bytes(rawfiles.compress(rawfiles.lines([2_000_000] * 100)))
    (archive / APP / HOST / timestamp / "completion_time.txt").write_text("2024-04-11T08:00:00-04:00\n")


@pytest.fixture(scope="module")
def years(collected):
    """The collected sweep beside two campaigns of old."""
    write_old_campaign(collected.archive, TIMESTAMP, ["filter-passthrough", "mystery"])
    write_old_campaign(collected.archive, OTHER, ["filter-passthrough"])
    write_old_campaign(collected.archive, "2024-04-14T01:00:00-04:00", ["filter-traces"])
    collected.run("--cores", "all", "report")
    return collected


def ask(checkout, query: str) -> list[tuple]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout.path)
        with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
            return database.sql(query).fetchall()


def page(checkout, timestamp: str) -> str:
    (file,) = (checkout.path / "reports/campaigns").glob(f"*{timestamp.replace(':', '')}.html")
    return file.read_text()


def test_a_query_shows_what_is_out_and_why(years) -> None:
    out = ask(years, "SELECT timestamp, tags, exclusion_reason FROM runs WHERE excluded GROUP BY ALL")
    assert out == [(TIMESTAMP, ["INVALID"], "tagged INVALID: the Go filter's plugin was not loaded")]
    assert ask(years, f"SELECT count(*) FROM cells WHERE timestamp = '{TIMESTAMP}'") == [(0,)]
    assert ask(years, f"SELECT sum(n_runs) FROM cells_all WHERE timestamp = '{TIMESTAMP}'") == [(4,)]


def test_the_pages_say_so_and_offer_the_result_with_it_put_back(years) -> None:
    shown = page(years, TIMESTAMP)
    for text in (
        "Pass-through filters with and without buffer",
        "tagged INVALID: the Go filter",
        "The same with excluded runs",
        "Valid and excluded",
        "mystery",
    ):
        assert text in shown, text
    assert "Valid and excluded" not in page(years, OTHER)
    assert "was called “K8s + Istio + PassthroughFilter”" in page(years, OTHER)


def test_what_does_not_fit_together_is_told(years) -> None:
    told = dict(ask(years, "SELECT timestamp, problem FROM problems WHERE problem SIMILAR TO '.*(config/).*'"))
    assert told == {
        TIMESTAMP: "the folder name 'mystery' is not in config/variants.yaml; it is shown under its own name",
        "2024-04-14T01:00:00-04:00": (
            "has no entry in config/catalogue.yaml, although other campaigns of this app have one"
        ),
    }
    quality = (years.path / "reports/quality.html").read_text()
    assert "bookinfo/shiver/2024-03-30T16:28:22-04:00 is in the catalogue, but not in the archive" in quality
    assert "more; all are in the log of rule <code>index</code>" in quality
    assert "52" in quality


def test_putting_a_tag_back_reads_no_raw_file_and_touches_no_other_campaign(years) -> None:
    before = years.contents()
    years.configure(tags={"include": ["INVALID"]})
    jobs = years.jobs("report")
    assert jobs["analyse"] == jobs["campaign_page"] == 1
    assert {"convert", "collect"}.isdisjoint(jobs)
    years.run("--cores", "all", "report")
    assert ask(years, f"SELECT sum(n_runs) FROM cells WHERE timestamp = '{TIMESTAMP}'") == [(4,)]
    assert "tagged INVALID" not in page(years, TIMESTAMP)
    assert years.contents() == before
    years.configure(tags={"include": []})
    years.run("--cores", "all", "report")
    assert ask(years, f"SELECT count(*) FROM cells WHERE timestamp = '{TIMESTAMP}'") == [(0,)]
    assert years.jobs("report") == {}


def test_a_word_about_one_campaign_makes_its_page_and_a_tag_its_tables(years) -> None:
    file = years.path / "config/catalogue.yaml"
    text = file.read_text()
    file.write_text(text.replace("All pass-through and trace filters again", "Everything again"))
    jobs = years.jobs("report")
    assert jobs.get("campaign_page") == 1
    assert "analyse" not in jobs
    entry = {"tag": "FAILED", "app": APP, "host": HOST, "pattern": f"{OTHER}/100/*/2.*"}
    file.write_text(text.rstrip() + "\n" + yaml.safe_dump([entry], default_flow_style=None, width=999))
    years.run("--cores", "all", "report", expect=1)  # indented unlike the lines above
    file.write_text(text.rstrip() + "\n  " + yaml.safe_dump([entry], default_flow_style=None, width=999))
    jobs = years.jobs("report")
    assert jobs["analyse"] == 1
    years.run("--cores", "all", "report")
    assert ask(years, f"SELECT run FROM runs WHERE timestamp = '{OTHER}' AND excluded") == [(2,)]
    file.write_text(text)


def test_an_unknown_tag_stops_everything_with_one_clear_error(years) -> None:
    years.configure(tags={"include": ["invalid"]})
    output = years.run("--cores", "all", "report", expect=1)
    assert "tags.include in the configuration: unknown tag 'invalid'; config/catalogue.yaml defines" in output
    assert "Traceback" not in output
    years.configure(tags={"include": []})
