"""The examples of docs/importing.md work as they are printed, each under ten lines."""

import re

import pytest
import yaml
from conftest import PROJECT
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.tables.convert import convert_campaign
from loadstone.tables.database import connect
from support import foreign

MINUTE = (
    foreign.VEGETA.replace("100, 100.00, 99.90", "6000, 100.02, 99.90")
    .replace("1.005s, 1s", "59.995s, 59.99s")
    .replace("200:100", "200:6000")
)


@pytest.fixture
def examples() -> str:
    page = (PROJECT / "docs/importing.md").read_text()
    return re.search(r"```yaml\n# config/imports.yaml\n(.*?)```", page, re.DOTALL)[1]


def test_each_is_under_ten_lines(examples):
    entries = examples.split("\n\n")
    assert len(entries) == len(yaml.safe_load(examples))
    assert max(len([line for line in entry.splitlines() if not line.startswith("#")]) for entry in entries) < 10


def test_they_work_as_printed(imports, examples, attack):
    (imports.folder / "config/imports.yaml").write_text(examples)
    report = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5], arrivals=50)
    imports.write("old/artillery/cached.json", report)
    imports.write("old/k6/plain_1.json", foreign.k6_json([1.0, 2.0]))
    imports.write(
        "old/k6/cached_2.txt", "     http_req_duration...: avg=2ms min=1ms med=2ms max=3ms p(90)=3ms p(95)=3ms\n"
    )
    imports.write("old/vegeta/cached-100rps.bin", attack.binary)
    imports.write("old/vegeta/plain-100rps.txt", MINUTE)
    imports.write("old/usage/plain-100rps.log", foreign.SAMPLES)
    imports.write("old/results.md", f"# Tests\n\n## 60s, 100rps baseline test\n\n```\n{MINUTE}```\n")
    imports.write(
        "old/published.md", "| scenario | min | median | 95p | max |\n|-|-|-|-|-|\n| two | 7 | 12 | 20 | 391 |\n"
    )
    imports.write("old/hey/plain-c3.csv", foreign.HEY)
    imports.write("old/ab/plain-c4-1.tsv", foreign.AB)
    imports.write("old/hdr/table.csv", foreign.HDR)
    imports.run()
    for campaign in archive.campaigns(imports.archive):
        convert_campaign(campaign, imports.folder / "tables", lambda _, name: name, 1, imports.log.append)
        analyse_campaign(campaign, imports.folder / "tables")
    with connect(imports.folder / "tables") as connection:
        query = "SELECT variant, rate, run, generator, load_model, evidence FROM runs ORDER BY ALL"
        found = connection.execute(query).fetchall()
        problems = connection.execute("SELECT source, problem FROM problems ORDER BY ALL").fetchall()
        samples = connection.execute("SELECT variant, count(*) FROM resources GROUP BY ALL").fetchall()
    assert found == [
        ("baseline test", 100, 1, "vegeta", "open", "summary"),
        ("cached", 3, 2, "k6", "closed", "summary"),
        ("cached", 50, 1, "artillery", "open", "raw"),
        ("cached", 100, 1, "vegeta", "open", "raw"),
        ("callouts", 1000, 1, "wrk2", "open", "histogram"),
        ("plain", 3, 1, "hey", "closed", "raw"),
        ("plain", 3, 1, "k6", "closed", "raw"),
        ("plain", 4, 1, "ab", "closed", "raw"),
        ("plain", 100, 1, "vegeta", "open", "summary"),
        ("two", 50, 1, "artillery", "open", "summary"),
    ]
    assert samples == [("plain", 2)]
    assert [problem for source, problem in problems if not source.endswith("k6.txt")] == []
