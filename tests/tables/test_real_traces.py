"""Dumps of traces that real Envoys made: a filter that asks Presidio three times, 20 ms each, before it forwards."""

import statistics
from pathlib import Path

import pytest
from loadstone import archive
from loadstone.archive import trace_dumps
from loadstone.tables import database
from loadstone.tables.traces import convert_dump
from support import tracing
from support.rawfiles import TIMESTAMP, compress, write_cell

REQUESTS = 20


@pytest.fixture(scope="module", params=["receiver", "jaeger"])
def connection(request, tmp_path_factory):
    """The tables of an archive with one dump of so many requests."""
    if request.param == "jaeger" and tracing.jaeger_program() is None:
        pytest.skip("there is no Jaeger (jaeger-all-in-one on PATH, or LOADSTONE_JAEGER)")
    folder = tmp_path_factory.mktemp("traces")
    with getattr(tracing, request.param)(folder) as (port, fetch):
        tracing.attack(folder, port, REQUESTS)
        content = fetch()
    place = folder / f"archive/demo/here/{TIMESTAMP}/_trace_dumps"
    write_cell(folder / "archive", {})
    place.mkdir()
    (place / "traces-1714682252555.json.zst").write_bytes(compress(content))
    (dump,) = trace_dumps.find(folder / "archive", archive.campaigns(folder / "archive"), {})
    log: list[str] = []
    convert_dump(dump, folder / "tables", log.append)
    with database.connect(Path(folder / "tables")) as found:
        assert found.sql("SELECT problem FROM problems WHERE problem LIKE '%root%'").fetchall() == []
        yield found


def test_every_request_is_one_connected_trace(connection) -> None:
    rows = connection.sql("SELECT count(DISTINCT trace_id), count(*) FILTER (WHERE depth IS NULL) FROM spans")
    assert rows.fetchall() == [(REQUESTS, 0)]


def test_services_and_calls(connection) -> None:
    rows = connection.sql("SELECT service, n_spans FROM trace_shares WHERE operation IS NULL").fetchall()
    found = {service: {n for name, n in rows if name == service} for service in ("front", "app", "presidio")}
    assert found["app"] == {1}
    assert found["presidio"] == {tracing.CALLS}
    assert connection.sql("SELECT DISTINCT root_service FROM trace_shares").fetchall() == [("front",)]


def test_presidio_took_what_it_took(connection) -> None:
    rows = connection.sql(
        "SELECT busy_ns, root_duration_ns, share, critical_ns, (SELECT sum(duration_ns) FROM spans AS each "
        "WHERE each.trace_id = trace_shares.trace_id AND service = 'presidio') "
        "FROM trace_shares WHERE service = 'presidio' AND operation IS NULL"
    ).fetchall()
    assert len(rows) == REQUESTS
    # The proxy's timers are coarse: on a busy machine a delay may begin milliseconds before it is counted from.
    assert statistics.median(row[0] for row in rows) >= 0.8 * tracing.CALLS * tracing.DELAY_MS * 1e6
    for busy_ns, root_ns, share, critical_ns, added_ns in rows:
        assert 0 < busy_ns <= root_ns and busy_ns == added_ns, "calls one after another"
        assert share == pytest.approx(busy_ns / root_ns)
        assert critical_ns == pytest.approx(busy_ns, rel=0.05)


def test_the_critical_path_is_the_whole_response(connection) -> None:
    rows = connection.sql(
        "SELECT sum(critical_ns), any_value(root_duration_ns) FROM trace_shares "
        "WHERE operation IS NULL GROUP BY trace_id"
    ).fetchall()
    assert all(critical == root for critical, root in rows)
