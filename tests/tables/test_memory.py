"""Memory does not follow the size of a file."""

from support import bigfiles
from support.rawfiles import write_cell

LIMIT_MIB = 400


def test_a_file_of_700_mb(project, tmp_path):
    cell = write_cell(project.archive, {}, rate="1000")
    bigfiles.write_repeated(cell.path / "1.results.json.zst", bigfiles.lines(2000), 50)
    assert bigfiles.peak_memory_mib(project.archive, project.tables) < LIMIT_MIB
    assert project.row("SELECT count(*) n FROM requests") == {"n": 100_000}


def test_a_file_that_holds_nothing_but_one_endless_line(project):
    cell = write_cell(project.archive, {})
    bigfiles.write_repeated(cell.path / "1.results.json.zst", b"x" * (1 << 20), 1000)
    assert bigfiles.peak_memory_mib(project.archive, project.tables) < LIMIT_MIB


def test_records_that_all_have_long_error_texts(project):
    cell = write_cell(project.archive, {})
    block = bigfiles.rawfiles.line(1, code=0, error="e" * 100_000, body=None)
    bigfiles.write_repeated(cell.path / "1.results.json.zst", block, 5000)
    assert bigfiles.peak_memory_mib(project.archive, project.tables) < LIMIT_MIB
    assert project.row("SELECT count(*) n FROM requests") == {"n": 5000}
