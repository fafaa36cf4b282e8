"""Hashing an archive again: every file that changed, vanished or appeared is named, and nothing is written to it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loadstone.archive import LINKS
from loadstone.errors import LoadstoneError
from loadstone.tables.verify import RECORDS, Findings, verify
from support import rawfiles
from support.checkout import Checkout
from support.rawfiles import TIMESTAMP, write_cell
from tables.tabling import Project


@pytest.fixture
def root(tmp_path) -> Path:
    """Two cells, the first as Loadstone collected it (with checksums), the second older; and a trace dump."""
    archive = tmp_path / "archive"
    files = {"1.results.json.zst": rawfiles.compress(rawfiles.lines([10, 20])), "1.summary.json": b"{}"}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    write_cell(archive, {**files, "1.sha256": sums.encode()})
    write_cell(archive, files, variant="envoy")
    (archive / "demo/_trace_dumps").mkdir()
    (archive / "demo/_trace_dumps/traces-1714682252555.json.zst").write_bytes(b"dump")
    return archive


class Archive:
    """Verifications of one archive, with what they said."""

    def __init__(self, root: Path) -> None:
        self.root, self.tables = root, root.parent / "tables"
        self.log: list[str] = []

    def verify(self) -> Findings:
        self.log = []
        return verify(self.root, self.tables, self.log.append)

    def file(self, variant: str, name: str) -> Path:
        return self.root / "demo/here" / TIMESTAMP / "100" / variant / name


@pytest.fixture
def recorded(root) -> Archive:
    """The same after its first verification."""
    archive = Archive(root)
    archive.verify()
    return archive


def relative(archive: Archive, path: Path) -> str:
    return path.relative_to(archive.root).as_posix()


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_the_first_time_records_every_file_and_is_content(root) -> None:
    found = Archive(root).verify()
    assert found.is_intact and not found.appeared
    assert (found.recorded, found.checked) == (8, 8)


def test_nothing_is_written_to_the_archive(root) -> None:
    before = tree(root)
    archive = Archive(root)
    archive.verify()
    archive.verify()
    assert tree(root) == before


def test_an_untouched_archive_has_nothing_to_tell(recorded) -> None:
    found = recorded.verify()
    assert found.is_intact
    assert (found.appeared, found.recorded, list(found.lines())) == ([], 0, [])


@pytest.mark.parametrize("variant", ["plain", "envoy"])
def test_one_flipped_bit_is_named_even_with_the_old_size_and_time(recorded, variant) -> None:
    file = recorded.file(variant, "1.results.json.zst")
    status = file.stat()
    content = bytearray(file.read_bytes())
    content[7] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    (said,) = recorded.verify().changed
    assert said.startswith(relative(recorded, file))
    assert recorded.log == [f"changed: {said}"]


def test_a_change_before_the_first_verification_shows_against_the_run_s_own_checksums(root) -> None:
    archive = Archive(root)
    archive.file("plain", "1.summary.json").write_bytes(b"[]")
    (said,) = archive.verify().changed
    assert "1.summary.json" in said and "1.sha256" in said


def test_a_change_before_the_first_verification_shows_against_what_was_converted(tmp_path) -> None:
    project = Project(tmp_path)
    cell = write_cell(project.archive, {"1.results.json": rawfiles.lines([10])})
    project.convert()
    (cell.path / "1.results.json").write_bytes(rawfiles.lines([11]))
    (said,) = verify(project.archive, project.tables, project.log.append).changed
    assert "1.results.json" in said


def test_vanished_files_are_named_until_it_is_accepted(recorded) -> None:
    file = recorded.file("envoy", "1.summary.json")
    file.unlink()
    for _ in range(2):
        found = recorded.verify()
        assert found.vanished == [relative(recorded, file)]
        assert not found.is_intact
    (record,) = (recorded.tables / RECORDS).glob("demo/here/*.json")
    record.unlink()
    assert recorded.verify().is_intact


def test_a_vanished_campaign_is_named_file_by_file(recorded) -> None:
    shutil.rmtree(recorded.root / "demo/here")
    assert len(recorded.verify().vanished) == 7


def test_a_file_that_only_its_checksums_name_has_vanished(root) -> None:
    archive = Archive(root)
    archive.file("plain", "1.results.json.zst").unlink()
    assert archive.verify().vanished == [relative(archive, archive.file("plain", "1.results.json.zst"))]


def test_a_run_that_is_just_being_linked_has_not_vanished(root) -> None:
    archive = Archive(root)
    file = archive.file("plain", "1.results.json.zst")
    (file.parent / ".1.part").mkdir()
    file.rename(file.parent / ".1.part" / file.name)
    assert archive.verify().is_intact


def test_a_new_file_is_named_once(recorded) -> None:
    file = recorded.file("envoy", "2.results.json.zst")
    file.write_bytes(b"x")
    found = recorded.verify()
    assert found.appeared == [relative(recorded, file)]
    assert found.is_intact
    assert recorded.verify().appeared == []
    file.write_bytes(b"y")
    assert len(recorded.verify().changed) == 1


def test_a_run_replaced_together_with_its_checksums_is_named(recorded) -> None:
    results, sums = recorded.file("plain", "1.results.json.zst"), recorded.file("plain", "1.sha256")
    results.write_bytes(b"another")
    summary = hashlib.sha256(b"{}").hexdigest()
    sums.write_text(f"{hashlib.sha256(b'another').hexdigest()}  {results.name}\n{summary}  1.summary.json\n")
    named = {said.partition(" ")[0] for said in recorded.verify().changed}
    assert named == {relative(recorded, results), relative(recorded, sums)}


def test_trace_dumps_above_the_campaigns_are_verified_too(recorded) -> None:
    dump = recorded.root / "demo/_trace_dumps/traces-1714682252555.json.zst"
    dump.write_bytes(b"other")
    (said,) = recorded.verify().changed
    assert said.startswith("demo/_trace_dumps/traces-1714682252555.json.zst")


def test_what_cannot_be_read_is_named(recorded) -> None:
    file = recorded.file("envoy", "1.summary.json")
    file.unlink()
    os.mkfifo(file)  # would block for ever
    dangling = recorded.file("envoy", "2.summary.json")
    dangling.symlink_to("nowhere")
    found = recorded.verify()
    assert set(found.unreadable) == {relative(recorded, file), relative(recorded, dangling)}
    assert not found.is_intact


def test_checksums_that_are_no_file_or_without_end_are_named(recorded) -> None:
    """A child process tries it: one that reads them would wait for ever, or fill the memory."""
    pipe, endless = recorded.file("envoy", "1.sha256"), recorded.file("envoy", "2.sha256")
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")
    script = (
        "import resource, sys; from pathlib import Path; from loadstone.tables.verify import verify;"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "print(*verify(Path(sys.argv[1]), Path(sys.argv[2]), lambda _: None).lines(), sep='\\n')"
    )
    command = [sys.executable, "-c", script, recorded.root, recorded.tables]
    allowed = {**os.environ, LINKS: '["/dev"]'}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=allowed)
    assert set(done.stdout.splitlines()) == {f"unreadable: {relative(recorded, each)}" for each in (pipe, endless)}


def test_links_in_circles_end(recorded) -> None:
    (recorded.root / "demo/here/again").symlink_to(recorded.root / "demo")
    assert recorded.verify().is_intact


def test_names_that_are_no_text(recorded) -> None:
    name = os.fsencode(recorded.file("envoy", "")) + b"/\xff<b>\n.json"
    Path(os.fsdecode(name)).write_bytes(b"x")
    (said,) = recorded.verify().appeared
    assert said.encode() and r"\xff<b>" in said
    assert recorded.verify().appeared == []


def test_an_interrupted_verification_goes_on_where_it_was(recorded) -> None:
    for number in range(3):
        shutil.copytree(recorded.root / "demo/here", recorded.root / f"demo/host{number}")

    def interrupt(line: str) -> None:
        if "host1" in line:
            raise KeyboardInterrupt

    recorded.verify()
    for number in range(3):
        (recorded.root / f"demo/host{number}" / TIMESTAMP / "extra.txt").write_text("x")
    with pytest.raises(KeyboardInterrupt):
        verify(recorded.root, recorded.tables, interrupt)
    done = json.loads((recorded.tables / RECORDS / "unfinished.json").read_text())["done"]
    assert "demo/host0/" + TIMESTAMP in done and "demo/host2/" + TIMESTAMP not in done
    # Campaigns that were done are not hashed again, yet what was found in them is named.
    shutil.rmtree(recorded.root / "demo/host0")
    found = recorded.verify()
    assert [path.partition("/20")[0] for path in found.appeared] == ["demo/host0", "demo/host1", "demo/host2"]
    assert "continuing" in recorded.log[0]
    assert len(recorded.verify().vanished) == 8


@pytest.mark.parametrize("text", ["", "[]", '{"done": 1}'])
def test_a_damaged_or_old_state_of_a_verification_is_not_continued(recorded, text) -> None:
    state = recorded.tables / RECORDS / "unfinished.json"
    state.write_text(text)
    n_files = recorded.verify().checked
    assert n_files > 0 and not state.exists()
    state.write_text(json.dumps({"done": [f"demo/here/{TIMESTAMP}"], "found": {}}))
    os.utime(state, (0, 0))
    assert recorded.verify().checked == n_files


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"group": ["demo"]}', '{"group": [], "files": {"a": 1}}'])
def test_a_damaged_record_is_an_error_for_people_and_stays(recorded, text) -> None:
    (record,) = (recorded.tables / RECORDS).glob("demo/here/*.json")
    record.write_text(text)
    with pytest.raises(LoadstoneError, match="cannot be read"):
        recorded.verify()
    assert record.read_text() == text


def test_without_an_archive_there_is_an_error(tmp_path) -> None:
    with pytest.raises(LoadstoneError, match="nothing to verify"):
        verify(tmp_path / "none", tmp_path / "tables", print)


def test_the_target_names_files_and_exits_with_an_error(pristine, tmp_path, root) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout")
    overrides = ("verify", "--cores", "1", "--config", f"archive={root}", f"tables={tmp_path}/tables")
    assert "8 checksums recorded for later checks" in checkout.run(*overrides)
    assert "0 changed, 0 vanished" in checkout.run(*overrides)
    (root / "demo/here" / TIMESTAMP / "100/plain/1.summary.json").write_bytes(b"[]")
    output = checkout.run(*overrides, expect=1)
    assert f"changed: demo/here/{TIMESTAMP}/100/plain/1.summary.json" in output
    assert "Traceback" not in output and "CalledProcessError" not in output
