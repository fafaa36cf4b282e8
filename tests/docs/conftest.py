"""What the tests of documents share."""

import duckdb
import pytest
from importing.conftest import attack, imports
from loadstone.tables.database import connect
from support.rawfiles import compress, lines, write_cell
from tables.tabling import Project

__all__ = ["attack", "database", "imports"]


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Views of every table over a small campaign: two variants at two rates, with three runs each."""
    project = Project(tmp_path_factory.mktemp("documented"))
    for variant_dir, added_ns in {"plain": 0, "istio": 400_000}.items():
        for rate in (50, 100):
            latencies_ns = [1_000_000 + added_ns + 1_000 * (number % 7) for number in range(2 * rate)]
            results = compress(lines(latencies_ns, rate))
            runs = {f"{run}.results.json.zst": results for run in (1, 2, 3)}
            options = {"rate": str(rate), "duration": "2s"}
            write_cell(project.archive, runs, rate=str(rate), variant=variant_dir, testOptions=options)
    project.make()
    return connect(project.tables)
