"""Views in memory and in the database file."""

import os
import shutil

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadstone import archive
from loadstone.errors import LoadstoneError
from loadstone.readers.load_generators import GENERATORS
from loadstone.tables import database, layout, traces
from loadstone.tables.schema import TABLES, VIEWS
from pyarrow import dataset
from support import rawfiles
from support.rawfiles import lines, write_cell

RUN = rawfiles.compress(lines([2_000_000] * 100))


@pytest.fixture
def two_apps(project):
    """Two campaigns of one cell each, converted and analysed."""
    for app in ("one", "two"):
        write_cell(project.archive, {"1.results.json.zst": RUN}, app=app)
    project.make()
    return list(archive.campaigns(project.archive))


def columns(connection, table: str) -> list[str]:
    return [row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()]


def test_views_without_any_table(tmp_path):
    with database.connect(tmp_path / "nothing") as connection:
        for table, schema in (TABLES | VIEWS).items():
            assert columns(connection, table) == schema.names
            expected = len(GENERATORS) if table == "generators" else 0
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (expected,)


def test_a_view_holds_the_campaigns_asked_for(project, two_apps):
    for campaigns, expected in ((None, 200), (two_apps, 200), (two_apps[:1], 100), ([], 0)):
        with database.connect(project.tables, campaigns) as connection:
            assert connection.execute("SELECT count(*) FROM requests").fetchone() == (expected,)
            assert columns(connection, "requests") == TABLES["requests"].names


def test_a_job_uses_the_one_core_that_snakemake_counts_for_it(project, two_apps):
    with database.connect(project.tables, two_apps) as connection:
        assert connection.execute("SELECT current_setting('threads')").fetchone() == (1,)


def test_the_metadata_of_files_is_kept_for_one_campaign_not_for_an_archive(project, two_apps):
    for campaigns, expected in ((two_apps[:1], True), (two_apps, False), (None, False), ([], False)):
        with database.connect(project.tables, campaigns) as connection:
            assert connection.execute("SELECT current_setting('parquet_metadata_cache')").fetchone() == (expected,)


def test_rows_of_a_table_that_is_written_again_are_the_new_ones(project, two_apps):
    """DuckDB keeps the metadata of files, not of what stood at their paths before: also where times are equal."""
    (file,) = (project.tables / "runs/app_dir=one").rglob("*.parquet")
    with database.connect(project.tables, two_apps[:1]) as connection:
        before = connection.execute("SELECT count(*) FROM runs").fetchone()
        table, times = pq.read_table(file, partitioning=None), file.stat()
        again = file.with_suffix(".tmp")
        pq.write_table(pa.concat_tables([table, table]), again)
        os.utime(again, ns=(times.st_atime_ns, times.st_mtime_ns))
        again.replace(file)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (2 * before[0],)


def test_a_connection_does_not_see_the_views_of_another(project, two_apps):
    with database.connect(project.tables, two_apps[:1]) as one, database.connect(project.tables, []) as none:
        assert one.execute("SELECT count(*) FROM requests").fetchone() == (100,)
        assert none.execute("SELECT count(*) FROM requests").fetchone() == (0,)
        database.add_view(one, project.tables, "requests", [])
        assert one.execute("SELECT count(*) FROM requests").fetchone() == (0,)
    with database.open_memory() as another:
        assert another.execute("SELECT count(*) FROM requests").fetchone() == (0,)
        (zone,) = another.execute("SELECT current_setting('TimeZone')").fetchone()
        assert zone == "UTC"


def test_tables_without_rows_have_the_types_of_those_with_rows(project, two_apps, tmp_path):
    with database.connect(project.tables) as filled, database.connect(tmp_path / "nothing") as empty:
        for table in TABLES | VIEWS:
            types = [each.sql(f"FROM {table} LIMIT 0").to_arrow_table().schema for each in (filled, empty)]
            assert types[0].equals(types[1]), table


def test_every_table_has_its_columns_and_types(project, two_apps):
    with database.connect(project.tables) as connection:
        for table, schema in (TABLES | VIEWS).items():
            found = dict(row[:2] for row in connection.execute(f"DESCRIBE {table}").fetchall())
            assert list(found) == schema.names
            assert found.get("timestamp", "VARCHAR") == "VARCHAR"
            assert found.get("rate", "DOUBLE") == "DOUBLE"
        types = dict(row[:2] for row in connection.execute("DESCRIBE runs").fetchall())
        assert types["started_at"] == "TIMESTAMP WITH TIME ZONE"
        assert types["labels"] == "MAP(VARCHAR, VARCHAR)"
        assert types["run"] == "INTEGER"
        types = dict(row[:2] for row in connection.execute("DESCRIBE requests").fetchall())
        assert types["sent_at"] == "TIMESTAMP_NS"


def test_the_file_opens_read_only_from_the_project_and_moves_with_it(project, two_apps, tmp_path, monkeypatch):
    database.build_database(project.tables, tmp_path / "loadstone.duckdb", tmp_path)
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    shutil.copytree(tmp_path, moved)
    shutil.rmtree(project.tables)
    monkeypatch.chdir(moved)
    with duckdb.connect("loadstone.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT app, count(*) FROM requests GROUP BY app ORDER BY app").fetchall() == [
            ("one", 100),
            ("two", 100),
        ]
        assert connection.execute("SELECT count(*) FROM spans").fetchone() == (0,)
        assert connection.execute("SELECT p50_ns FROM cells").fetchall() == [(2e6,), (2e6,)]
        views = {
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        }
        assert views == set(TABLES) | set(VIEWS)


def test_tables_outside_of_the_project(project, two_apps, tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    odd = tmp_path / "odd [a]* 'dir'"
    project.tables.rename(odd)
    root.mkdir()
    database.build_database(odd, root / "loadstone.duckdb", root)
    monkeypatch.chdir("/")
    with duckdb.connect(str(root / "loadstone.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM requests").fetchone() == (200,)


def test_a_query_for_one_campaign_opens_no_other_file(project, two_apps, tmp_path, monkeypatch):
    database.build_database(project.tables, tmp_path / "loadstone.duckdb", tmp_path)
    for path in (project.tables / "requests/app_dir=two").rglob("*.parquet"):
        path.write_bytes(b"no parquet")
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("loadstone.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM requests WHERE app = 'one'").fetchone() == (100,)


def test_the_file_is_replaced_in_one_step(project, two_apps, tmp_path):
    path = tmp_path / "loadstone.duckdb"
    path.write_bytes(b"old")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database.sql, "load", lambda _: "SELECT nonsense")
        with pytest.raises(LoadstoneError):
            database.build_database(project.tables, path, tmp_path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_campaigns_that_are_gone_are_pruned(project, two_apps, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    (project.tables / "requests/app_dir=two/host_dir=here/timestamp_dir=linked").symlink_to(outside)
    database.prune(project.tables, two_apps[:1])
    left = {path.relative_to(project.tables).parts[1] for path in project.tables.rglob("*.parquet")}
    assert left == {"app_dir=one"}
    assert len(list((project.tables / ".manifest").rglob("*.json"))) == 1
    assert (outside / "keep").exists()
    assert project.row("SELECT count(*) n FROM requests") == {"n": 100}
    database.prune(project.tables, [])
    assert list(project.tables.rglob("*.parquet")) == []


@pytest.mark.parametrize("content", [b"", b"PAR1", b"garbage" * 99])
def test_a_damaged_table_is_named_with_what_to_do_and_its_removal_heals_it(project, content):
    write_cell(project.archive, {"1.results.json": lines([10**6] * 100)})
    project.make()
    for table in ("cells", "requests"):
        file = next((project.tables / table).rglob("*.parquet"))
        whole = file.read_bytes()
        file.write_bytes(content)
        for look in (
            lambda: database.connect(project.tables),
            lambda: database.build_database(
                project.tables, project.tables.parent / "all.duckdb", project.tables.parent
            ),
        ):
            with pytest.raises(LoadstoneError, match="cannot be read") as told:
                look()
            assert str(file.relative_to(project.tables)) in str(told.value)
        if table == "requests":
            shutil.rmtree(project.tables / layout.ANSWERS)
            with pytest.raises(LoadstoneError, match="cannot be read"):
                project.analyse()
        assert file.read_bytes() == content, "nothing is removed by itself"
        file.unlink()
        project.make()
        assert file.read_bytes() == whole


ZONES = ("2026-01-01T12:00:00+01:00", "2026-01-01T12:00:00-04:00")  # two moments that differ only in their zones
KEYS = [("2024", "007", timestamp) for timestamp in ZONES]


@pytest.mark.parametrize("table", ["runs", "requests"])
def test_plain_readers_get_the_key_as_text(project, table, tmp_path, monkeypatch):
    """Without an option, as people read Parquet: DuckDB would guess types for Hive partitions, pandas would refuse."""
    monkeypatch.chdir(tmp_path)
    for timestamp in ZONES:
        write_cell(project.archive, {"1.results.json.zst": RUN}, app="2024", host="007", at=timestamp)
    project.make()
    folder = f"tables/{table}"
    by_duckdb = duckdb.sql(
        f"SELECT DISTINCT app, host, timestamp FROM read_parquet('{folder}/**/*.parquet') ORDER BY ALL"
    )
    by_pandas = pd.read_parquet(folder)[["app", "host", "timestamp"]].drop_duplicates()
    by_pyarrow = pq.read_table(folder, columns=["app", "host", "timestamp"]).to_pylist()
    by_dataset = dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    assert by_duckdb.fetchall() == KEYS
    assert sorted(by_pandas.itertuples(index=False, name=None)) == KEYS
    for found in (by_pyarrow, by_dataset):
        assert sorted({(row["app"], row["host"], row["timestamp"]) for row in found}) == KEYS


def test_the_folders_of_older_versions_are_removed(project, two_apps):
    for folder in list(project.tables.glob("*/app_dir=*/host_dir=*/timestamp_dir=*")):
        former = folder.parents[2].joinpath(*(part.replace("_dir=", "=") for part in folder.parts[-3:]))
        shutil.copytree(folder, former)
    dumped = project.tables / "spans/app=one/host=here/timestamp=__HIVE_DEFAULT_PARTITION__/traces-1~1.parquet"
    dumped.parent.mkdir(parents=True)
    dumped.touch()
    assert project.row("SELECT count(*) n FROM requests") == {"n": 200}
    database.prune(project.tables, two_apps)
    traces.prune_dumps(project.tables, [])
    assert list(project.tables.glob("*/app=*/**/*.parquet")) == []
    assert project.row("SELECT count(*) n FROM requests") == {"n": 200}
