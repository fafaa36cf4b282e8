"""What the archive goes through when its storage fails, at whichever write."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loadstone.archive import scan_cell
from loadstone.archive.durable import give_name
from loadstone.archive.staging import Staging
from loadstone.errors import LoadstoneError
from support.bench import Bench
from support.faulty_storage import Storage, faulty_storage

QUICK = {"duration": "50ms", "warmup": None, "sampling": None}


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with faulty_storage(tmp_path / "storage") as storage:
        yield storage


@pytest.fixture
def bench(tmp_path: Path, storage: Storage) -> Bench:
    """A sweep whose archive alone lies on the faulty storage."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/archive").symlink_to(storage.path)
    return Bench(tmp_path / "bench", runs=200, **QUICK)


def test_without_hard_links(bench: Bench, storage: Storage) -> None:
    storage.set(links=False)
    bench.collect(1)
    first = whole(bench, 1)
    bench.collect(1)
    bench.collect(2)
    assert whole(bench, 1) == first and whole(bench, 2)
    assert not list(bench.cell.path.glob(".*"))


def test_without_hard_links_a_taken_name_is_not_taken_away(bench: Bench, storage: Storage) -> None:
    storage.set(links=False)
    bench.collect(1)
    results = bench.cell.path / "1.results.json.zst"
    staging = Staging(bench.cell, 1)
    staging.prepare()
    (staging.path / "results").write_bytes(b"another attack")
    staging.seal({".results.json.zst": staging.path / "results"})
    before = results.read_bytes()
    staging.publish(lambda _: None)
    assert results.read_bytes() == before
    (bench.cell.path / "late").write_bytes(b"another attack")
    with pytest.raises(FileExistsError):
        give_name(bench.cell.path / "late", results)
    assert results.read_bytes() == before


def test_the_disk_is_full_at_each_write(bench: Bench, storage: Storage) -> None:
    kept: dict[int, dict[str, str]] = {}
    for write in range(1, 200):
        storage.set(full_at=write)
        problem = failure(lambda: bench.collect(write))  # noqa: B023 - called here
        storage.set()
        if problem is None:
            break
        assert "space" in problem
        if write in scan_cell(bench.cell).collected():
            assert whole(bench, write)
        bench.collect(write)
        kept[write] = whole(bench, write)
    else:
        pytest.fail("it never got through")
    assert all(whole(bench, run) == content for run, content in kept.items())
    assert write > 10, "of so few writes it can't consist"
    assert not list(bench.cell.path.glob(".*"))


def test_read_only_storage(bench: Bench, storage: Storage) -> None:
    bench.collect(1)
    first = whole(bench, 1)
    storage.set(read_only=True)
    with pytest.raises((LoadstoneError, OSError), match=r"[Rr]ead-only"):
        bench.collect(2)
    assert whole(bench, 1) == first
    storage.set()
    bench.collect(2)
    assert whole(bench, 2)


def failure(act: Callable[[], None]) -> str | None:
    """What a user is told."""
    try:
        act()
    except (LoadstoneError, OSError) as error:
        return str(error)
    return None


def whole(bench: Bench, run: int) -> dict[str, str]:
    """The files of a complete run with their SHA-256, which are as its record says."""
    record = (bench.cell.path / f"{run}.sha256").read_text()
    said = {name: digest for digest, name in (line.split("  ") for line in record.splitlines())}
    found = {name: hashlib.sha256((bench.cell.path / name).read_bytes()).hexdigest() for name in said}
    assert found == said and f"{run}.results.json.zst" in found
    return found
