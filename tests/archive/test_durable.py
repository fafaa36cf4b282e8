"""A name never stands for half a content."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from loadstone.archive.durable import remove_temporary, replace, write_new


def test_an_existing_name_wins(tmp_path: Path) -> None:
    assert write_new(tmp_path / "file", b"first")
    assert not write_new(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


def test_of_many_writers_one_wins_whole(tmp_path: Path) -> None:
    contents = [bytes([65 + number]) * 200_000 for number in range(8)]
    threads = [threading.Thread(target=write_new, args=(tmp_path / "file", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_leaves_the_former_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(tmp_path / "file", b"former")

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for write in (replace, write_new):
        with pytest.raises(OSError, match="No space"):
            write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"former"
    assert os.listdir(tmp_path) == ["file"]


def test_what_nobody_else_may_read_is_never_readable_by_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = Path.write_bytes, []

    def watched(path: Path, content: bytes) -> int:
        seen.append(path.stat().st_mode & 0o777)
        return real(path, content)

    monkeypatch.setattr(Path, "write_bytes", watched)
    for mode in (0o600, 0o644):
        replace(tmp_path / "file", b"environment", mode=mode)
        assert (tmp_path / "file").stat().st_mode & 0o777 == mode
    assert seen == [0o600, 0o644]


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    code = f"""
import os, signal
from pathlib import Path
from loadstone.archive.durable import replace
from loadstone.tables.layout import written
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if os.fork():
    os.wait()
    replace(Path({str(folder / "index.html")!r}), b"half")
with written(Path({str(folder)!r}), Path({str(folder / "100~plain.parquet")!r})) as path:
    path.write_bytes(b"half")
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    left = {file.name for file in folder.iterdir()}
    assert len(left) == 2
    others = {"index.html", ".mine.tmp", ".abcdefgh.tmp.html", "100~plain.parquet", ".100~plain.parquet.tmp"}
    for name in others:
        (folder / name).touch()
    (folder / ".abcdefgi.tmp").mkdir()
    others.add(".abcdefgi.tmp")
    remove_temporary(folder)
    assert {file.name for file in folder.iterdir()} == left | others
    a_day_ago_s = time.time() - 24 * 3600 - 1
    for file in folder.iterdir():
        os.utime(file, (a_day_ago_s, a_day_ago_s))
    remove_temporary(folder)
    assert {file.name for file in folder.iterdir()} == others
    remove_temporary(tmp_path / "none")
