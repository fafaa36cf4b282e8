"""What is derived when its storage is full, at whichever file: made again, and the same as if nothing had been."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from loadstone.errors import LoadstoneError
from support import rawfiles
from support.faulty_storage import Storage, faulty_storage
from support.rawfiles import lines, write_cell
from tables.tabling import Project

RUN = rawfiles.compress(lines([2_000_000, 3_000_000] * 50))


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with faulty_storage(tmp_path / "storage") as storage:
        yield storage


def test_the_disk_is_full_at_each_file(tmp_path: Path, storage: Storage) -> None:
    project = Project(tmp_path)
    for variant in ("plain", "envoy"):
        files = {f"{run}.results.json.zst": RUN for run in (1, 2)}
        write_cell(project.archive, files, variant=variant)
    project.make()
    expected = files_of(project.tables)
    said: list[str] = []
    for number in range(1, 200):
        project.tables = storage.path / f"tables-{number}"
        storage.set(full_at=number, files=True)
        try:
            project.make()
        except (LoadstoneError, OSError) as error:
            said.append(str(error))
        else:
            break
        finally:
            storage.set()
        project.make()
        assert files_of(project.tables) == expected, number
    else:
        pytest.fail("it never got through")
    assert files_of(project.tables) == expected
    assert all("space" in text for text in said), said
    assert len(said) > 10, "of so few files they can't consist"


def files_of(folder: Path) -> dict[str, str]:
    """Every table's file with its SHA-256."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*.parquet"))
    }
