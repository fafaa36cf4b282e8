"""Bundles: written whole and repeatably; damaged, altered and hostile ones are refused with what is wrong."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from loadstone.errors import LoadstoneError
from loadstone.publish import bundle_check
from loadstone.publish.bundle import Member, as_json, write
from support import rawfiles

PROVENANCE = {"format": 1, "tables": 1, "software": {"loadstone": "0"}, "settings": {}, "whole": True}
RAW = "archive/app/host/2026-11-21T12:00:00+00:00/100/plain"


def members(**more: bytes) -> list[Member]:
    files = {
        f"{RAW}/1.results.json.zst": b"raw" * 1000,
        f"{RAW}/metadata.json": b"{}",
        "config/variants.yaml": b"{}",
        "provenance.json": as_json(PROVENANCE),
        "tables/runs/100%25.parquet": b"table",
    }
    return [Member(name, content) for name, content in sorted((files | more).items())]


def written(path: Path, members: list[Member]) -> Path:
    write(path, members)
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return written(tmp_path / "bundle.zip", members())


def rewrite(path: Path, change=lambda entries: entries) -> Path:
    """The same members, as a list of (ZipInfo, content) that `change` may alter."""
    with zipfile.ZipFile(path) as old:
        entries = [(info, old.read(info)) for info in old.infolist()]
    target = path.with_name("changed.zip")
    with zipfile.ZipFile(target, "w") as new:
        for info, content in change(entries):
            new.writestr(info, content)
    return target


def info(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    made.create_system, made.external_attr = 3, mode << 16
    return made


def refused(path: Path, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        bundle_check.check(path)


def test_what_is_written_is_whole_and_the_same_every_time(bundle, tmp_path) -> None:
    checked = bundle_check.check(bundle)
    assert set(checked.sums) == {member.name for member in members()}
    said = write(tmp_path / "elsewhere.zip", members())
    assert (tmp_path / "elsewhere.zip").read_bytes() == bundle.read_bytes()
    assert said.endswith(f"SHA-256 {hashlib.sha256(bundle.read_bytes()).hexdigest()}")


def test_other_tools_can_check_it(bundle, tmp_path) -> None:
    with zipfile.ZipFile(bundle) as opened:
        opened.extractall(tmp_path / "out")
    folder = tmp_path / "out/loadstone-bundle"
    # sha256sum knows no percent-encoding, which BagIt wants of a name with a percent sign
    text = (folder / "manifest-sha256.txt").read_text().replace("%25", "%")
    done = subprocess.run(["sha256sum", "--check", "--strict"], cwd=folder, input=text, text=True, check=False)
    assert done.returncode == 0
    assert (folder / "bagit.txt").read_text().startswith("BagIt-Version: 1.0\n")


def test_raw_results_get_their_names_back(tmp_path) -> None:
    odd = "archive/a%2Fb is no path/%FF/x"
    path = written(tmp_path / "b.zip", [*members(), Member(f"{RAW}/ü%25{{}}.txt", b"1")])
    bundle_check.unpack(bundle_check.check(path), tmp_path / "out")
    assert (tmp_path / "out" / RAW / "ü%{}.txt").read_bytes() == b"1"
    assert not (tmp_path / "out/tables").exists()
    with pytest.raises(LoadstoneError, match="leads outside"):
        bundle_check.check(written(tmp_path / "odd.zip", [*members(), Member(odd, b"1")]))


def test_a_file_that_changes_meanwhile_stops_it_and_leaves_the_former_bundle(bundle, tmp_path) -> None:
    before, growing = bundle.read_bytes(), Path("/proc/self/status")  # has a size of 0 and content
    with pytest.raises(LoadstoneError, match="changed while"):
        write(bundle, [*members(), Member("site/x.html", growing)])
    assert bundle.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["bundle.zip"]


def test_a_full_disk_leaves_the_former_bundle(bundle, tmp_path) -> None:
    before = bundle.read_bytes()
    big = tmp_path / "big"
    big.write_bytes(bytes(1 << 20))
    script = (
        "import resource, signal, sys; from pathlib import Path; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19));"
        "from loadstone.publish import bundle; from loadstone.publish.bundle import Member;"
        "bundle.write(Path(sys.argv[1]), [Member('archive/big', Path(sys.argv[2]))])"
    )
    done = subprocess.run([sys.executable, "-c", script, bundle, big], capture_output=True, text=True, check=False)
    assert "LoadstoneError: the bundle" in done.stderr and "cannot be written" in done.stderr
    assert bundle.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["big", "bundle.zip"]


def test_memory_does_not_grow_with_the_files(tmp_path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(600 << 20)
    path, names = tmp_path / "b.zip", "from pathlib import Path; from loadstone.publish import bundle, bundle_check"
    script = (
        f"import sys; {names}; from loadstone.publish.bundle import Member;"
        "from bundling_members import members;"
        "bundle.write(Path(sys.argv[1]), [Member('archive/big', Path(sys.argv[2])),"
        "*members()]); bundle_check.check(Path(sys.argv[1]));"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    (tmp_path / "bundling_members.py").write_text(
        "from loadstone.publish.bundle import Member, as_json\n"
        f"def members(): return [Member('provenance.json', as_json({PROVENANCE!r}))]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path, big],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 400_000  # KiB


def test_only_a_bundle_is_replaced(tmp_path) -> None:
    mine = tmp_path / "mine.zip"
    with zipfile.ZipFile(mine, "w") as other:
        other.writestr("thesis.txt", "mine")
    with pytest.raises(LoadstoneError, match="not a bundle"):
        write(mine, members())
    assert zipfile.ZipFile(mine).namelist() == ["thesis.txt"]


def test_every_cut_is_noticed(bundle) -> None:
    content = bundle.read_bytes()
    for size in [*range(0, len(content), 97), len(content) - 1]:
        bundle.write_bytes(content[:size])
        refused(bundle, "damaged, truncated or not a bundle|not a bundle")


@given(data=st.data())
def test_no_changed_byte_of_a_file_goes_unnoticed(data, tmp_path_factory) -> None:
    content = [*members(), Member(f"{RAW}/ü.txt", b"1")]
    path = written(tmp_path_factory.mktemp("fuzz") / "b.zip", content)
    altered = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(altered) - 1))
    altered[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(altered)
    try:
        checked = bundle_check.check(path)
    except LoadstoneError:
        return
    # Bytes of the zip file itself that mean nothing here (times, comments): all that is in it is what it was.
    original = written(path.with_name("original.zip"), content)
    assert checked.sums == bundle_check.check(original).sums


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../evil", "is not in"),
        ("/etc/evil", "is not in"),
        ("loadstone-bundle/../../evil", "leads outside"),
        ("loadstone-bundle/data/archive/%2E%2E/evil", "leads outside"),
        ("loadstone-bundle/data/archive/a%2f..%2f..%2fevil", "leads outside"),
        ("loadstone-bundle/data/archive//evil", "leads outside"),
        ("loadstone-bundle/data\\..\\evil", "is not in"),
        ("loadstone-bundle/data/site/evil.html", "is not in a manifest"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(bundle, name, words) -> None:
    refused(rewrite(bundle, lambda entries: [*entries, (info(name), b"evil")]), words)


def test_links_and_folders_are_refused(bundle) -> None:
    for mode in (0o120777, 0o040755, 0o010644, 0o020644, 0):
        link = info("loadstone-bundle/data/archive/link", mode), b"/etc/passwd"
        refused(rewrite(bundle, lambda entries, link=link: [*entries, link]), "not a regular file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(bundle) -> None:
    refused(rewrite(bundle, lambda entries: [*entries, entries[2]]), "appears twice")


def test_compressed_members_are_refused_before_they_are_read(bundle) -> None:
    bomb = info("loadstone-bundle/data/archive/bomb")
    bomb.compress_type = zipfile.ZIP_DEFLATED
    refused(rewrite(bundle, lambda entries: [*entries, (bomb, bytes(10_000_000))]), "is compressed")


def test_a_member_that_claims_to_be_huge_is_refused(bundle) -> None:
    content = bytearray(bundle.read_bytes())
    at = content.find(b"PK\x01\x02")
    content[at + 20 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little") * 2
    bundle.write_bytes(content)
    refused(bundle, "larger than the file|damaged")


def test_a_list_of_members_that_claims_to_be_huge_is_refused(bundle) -> None:
    content = bytearray(bundle.read_bytes())
    end = content.rfind(b"PK\x05\x06")
    content[end + 12 : end + 16] = (0xFFFFFF00).to_bytes(4, "little")
    bundle.write_bytes(content)
    refused(bundle, "damaged, truncated or not a bundle")


@pytest.mark.parametrize("find", [bytearray.find, bytearray.rfind], ids=["of the member", "of the list of members"])
def test_a_name_that_is_no_text_is_refused(tmp_path, find) -> None:
    path = written(tmp_path / "b.zip", [*members(), Member(f"{RAW}/ü.txt", b"1")])
    content = bytearray(path.read_bytes())
    content[find(content, "ü.txt".encode())] = 0xFF
    path.write_bytes(content)
    refused(path, "damaged, truncated or not a bundle")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("archive/a%62", "archive/ab"), "archive/ab: File exists"),
        (("archive/x", "archive/x/y"), "archive/x/y: File exists"),
        (("archive/" + "l" * 300,), "File name too long"),
        (("archive/" + "/".join(["d"] * 3000),), "File name too long"),
    ],
    ids=["two that are one", "file and folder", "long", "deep"],
)
def test_files_that_can_not_lie_side_by_side_are_refused_in_words(tmp_path, names, words) -> None:
    path = written(tmp_path / "b.zip", [*members(), *(Member(name, b"1") for name in names)])
    with pytest.raises(LoadstoneError, match=f"cannot be unpacked into .*{words}") as raised:
        bundle_check.unpack(bundle_check.check(path), tmp_path / "out")
    assert len(str(raised.value)) < 1000


def test_what_is_no_file_is_named_and_waits_for_nobody(bundle, tmp_path) -> None:
    before = bundle.read_bytes()
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("pipe", "not a regular file"), ("gone", "No such file")):
        with pytest.raises(LoadstoneError, match=f"{name} cannot be read, so it cannot be bundled: .*{words}"):
            write(bundle, [*members(), Member("archive/x", tmp_path / name)])
    assert bundle.read_bytes() == before


def test_an_altered_file_is_named_although_the_zip_fits(bundle) -> None:
    def change(entries):
        return [(each, b"other" if each.filename.endswith("1.results.json.zst") else text) for each, text in entries]

    refused(rewrite(bundle, change), "was altered:\n.*1.results.json.zst")


def test_a_missing_file_is_named(bundle) -> None:
    refused(
        rewrite(bundle, lambda entries: [e for e in entries if "metadata" not in e[0].filename]),
        "metadata.json is missing",
    )


def test_what_is_no_bundle_says_so(tmp_path) -> None:
    refused(tmp_path / "none.zip", "there is no bundle")
    (tmp_path / "text.zip").write_text("hello")
    refused(tmp_path / "text.zip", "not a bundle")
    refused(tmp_path, "cannot be read")
    for provenance in (
        b"[]",
        b"{}",
        b"\xff",
        as_json(PROVENANCE | {"format": 2}),
        as_json(PROVENANCE | {"software": 1}),
    ):
        path = written(tmp_path / "b.zip", members(**{"provenance.json": provenance}))
        refused(path, "provenance.json|another version")


def test_tables_that_were_not_checked_are_not_called_sound(bundle, tmp_path) -> None:
    """Whoever forges tables may also say that another version of DuckDB made them."""
    said: list[str] = []
    bundle_check.verify_bundle(bundle, tmp_path / "tables", [sys.executable, "-c", ""], said.append, 10**9)
    assert any(line.startswith("not checked: 1 of 1 table files, since they were made with") for line in said)
    assert said[-1].endswith("but whether its tables come from its raw results was not checked")


@pytest.mark.parametrize("name", ["2.results.json.zst", "2.results.json%2Ezst"])  # unpacked, both have the same name
@pytest.mark.parametrize("declares", [True, False])
def test_requests_that_expand_beyond_the_limit_are_refused(tmp_path, name, declares) -> None:
    """Valid requests of 1.3 GB in a bundle of 60 kB: refused before anything is unpacked, in little memory."""
    requests = rawfiles.lines([2_000_000] * 100_000)
    frame = zstandard.ZstdCompressor(3, write_content_size=declares).compress(requests)
    bomb = written(tmp_path / "bomb.zip", members(**{f"{RAW}/{name}": frame * 50}))
    larger, smaller = 51 * len(requests), 49 * len(requests)
    script = (
        "import resource, sys; from pathlib import Path; from loadstone.publish.bundle_check import verify_bundle;"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "verify_bundle(Path(sys.argv[1]), Path(sys.argv[2]), [sys.executable, '-c', ''], print, int(sys.argv[3]))"
    )

    def verified(limit: int) -> str:
        command = [sys.executable, "-c", script, bomb, tmp_path / "tables", str(limit)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    for limit in (smaller, len(requests) // 2):
        assert f"its raw results are larger than {limit:,} bytes" in verified(limit)
        assert not (tmp_path / "tables").exists()
    assert "larger than" not in verified(larger)


def test_what_is_declared_is_refused_before_it_is_decompressed(tmp_path) -> None:
    """A frame that says that it holds a terabyte, and nothing else."""
    header = b"\x28\xb5\x2f\xfd\xe0" + (10**12).to_bytes(8, "little")
    path = written(tmp_path / "b.zip", members(**{f"{RAW}/2.results.json.zst": header}))
    checked = bundle_check.check(path)
    with pytest.raises(LoadstoneError, match="verify_limit"):
        bundle_check.check_expansion(checked, 10**11)
    bundle_check.check_expansion(checked, 10**13)
