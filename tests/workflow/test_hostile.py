"""Names from the archive can be anything a file system allows; the whole workflow carries them through unchanged."""

import json
import shutil

import duckdb
import pytest

APP = "<script>alert('app')</script>".replace("/", "|")
HOST = "a host, \"quoted\" & 'more' {run} *?[x] 100% " + "x" * 20
VARIANTS = [
    "plain",
    "a b",
    "<img src=x onerror=alert(1)>",
    "a..b",
    "x'); DROP TABLE runs; --",
    "ünï\ncode",
    "{variant}",
    "$(id)",
    "ab" * 20,
]


@pytest.fixture(scope="module")
def hostile(collected):
    """The collected sweep again under hostile names, beside a broken one."""
    campaign = collected.campaign
    renamed = collected.archive / APP / HOST / campaign.name
    for variant in VARIANTS:
        cell = renamed / "50" / variant
        shutil.copytree(campaign / "50" / "plain", cell)
        metadata = json.loads((cell / "metadata.json").read_text())
        metadata["workloadInfo"] |= {"variant": variant, "hostname": HOST}
        (cell / "metadata.json").write_text(json.dumps(metadata))
    (collected.archive / "app" / "host" / "no <b>time<b>" / "100" / "plain").mkdir(parents=True)
    broken = collected.archive / "app" / "host" / "2026-01-02T03:04:05+00:00"
    for number, content in enumerate(
        [b"", b"not zstd", (campaign / "50/plain/1.results.json.zst").read_bytes()[:-3]], 1
    ):
        (broken / "100" / "plain").mkdir(parents=True, exist_ok=True)
        (broken / "100" / "plain" / f"{number}.results.json.zst").write_bytes(content)
    (broken / "100" / "plain" / "notes <b>.txt").touch()
    (broken / "not a rate").mkdir()
    before = collected.contents()
    collected.run("--cores", "all", "report")
    assert collected.contents() == before
    return collected


def test_hostile_names_arrive_in_the_tables(hostile, monkeypatch) -> None:
    monkeypatch.chdir(hostile.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        query = (
            "SELECT app, host, variant, count(*) FROM runs WHERE app = ? AND NOT excluded GROUP BY ALL ORDER BY variant"
        )
        runs = database.execute(query, [APP]).fetchall()
        assert runs == [(APP, HOST, variant, 2) for variant in sorted(VARIANTS)]
        cells = database.execute("SELECT variant FROM cells WHERE app = ? ORDER BY variant", [APP]).fetchall()
        assert [row[0] for row in cells] == sorted(VARIANTS)


def test_broken_files_are_kept_named_and_left_out(hostile, monkeypatch) -> None:
    monkeypatch.chdir(hostile.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        rows = database.sql("SELECT run, excluded, problems FROM runs WHERE app = 'app' ORDER BY run").fetchall()
        assert [(run, excluded) for run, excluded, _ in rows] == [(1, True), (2, True), (3, True)]
        texts = [" ".join(problems) for _, _, problems in rows]
        assert "empty" in texts[0] and "damaged" in texts[1] and "truncated" in texts[2]
        assert all("metadata.json is missing" in text for text in texts)
        sources = {row[0] for row in database.sql("SELECT source FROM problems").fetchall()}
        assert "app/host/2026-01-02T03:04:05+00:00/not a rate" in sources
        assert "app/host/2026-01-02T03:04:05+00:00/100/plain/notes <b>.txt" in sources


def test_nothing_is_left_to_do_and_pages_show_names_as_text(hostile) -> None:
    assert set(hostile.jobs("--cores", "all", "report")) <= {"report"}
    reports = hostile.path / "reports"
    assert len(list((reports / "campaigns").glob("*.html"))) == 3
    # Neither a timestamp nor metadata: not a campaign, but named.
    assert "app/host/no &lt;b&gt;time&lt;b&gt;" in (reports / "quality.html").read_text()
    others = 3  # two of the sweep, and the one of which every file is broken
    assert len(list((reports / "variants").glob("*.html"))) == len(VARIANTS) + others
    for page in reports.rglob("*.html"):
        text = page.read_text()
        assert "<script>alert" not in text and "<img src=x" not in text and "<b>time" not in text
