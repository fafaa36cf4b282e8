"""What can go wrong outside: told plainly, nothing replaced, and no credential in any text."""

import json
import os
import shutil
from pathlib import Path

import pytest
from loadstone.archive import LEADS_OUT
from loadstone.errors import LoadstoneError
from loadstone.publish import s3
from loadstone.publish.bucket import names
from loadstone.publish.bucket.transfer import pull, push
from support.buckets import EVENING, MORNING, contents, pulled, pushed, refused, write_run
from support.faulty_storage import faulty_storage
from support.storage import SECRET

PLAIN = f"demo/here/{MORNING}/100/plain"
OPEN = f"demo/here/{EVENING}/100/plain"


@pytest.mark.parametrize("work", [push, pull])
def test_no_storage_none_that_answers_and_none_of_that_name(archive, bucket, work) -> None:
    with pytest.raises(LoadstoneError, match="storage is missing in"):
        work(archive, archive.parent / "tables", {}, print)
    assert "connect" in refused(work, archive, bucket, endpoint="http://127.0.0.1:1")
    assert "the bucket no-such-bucket does not exist" in refused(work, archive, bucket, to="s3://no-such-bucket/x")


@pytest.mark.parametrize("work", [push, pull])
def test_without_credentials_or_with_wrong_ones(archive, bucket, monkeypatch, work) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong" + SECRET)
    texts = [refused(work, archive, bucket)]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    texts.append(refused(work, archive, bucket))
    for text in texts:
        assert "AWS_ACCESS_KEY_ID" in text and "AWS_PROFILE" in text
        assert SECRET not in text


def test_an_empty_bucket_is_not_taken_for_an_archive(elsewhere, bucket) -> None:
    assert "holds no archive" in refused(pull, elsewhere, bucket)
    assert not elsewhere.exists()


def test_what_differs_is_named_and_neither_side_is_replaced(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    there, here = bucket.objects(), contents(elsewhere)
    results = archive / PLAIN / "1.results.json.zst"
    results.write_bytes(b"x" * results.stat().st_size)  # of the same size
    write_run(archive / PLAIN, 9)
    for _ in range(2):
        assert f"{PLAIN}/1.results.json.zst differs from the object in the bucket" in refused(push, archive, bucket)
    new = bucket.objects()
    assert {name: new[name] for name in there} == there
    assert f"archive/{PLAIN}/9.results.json.zst" in new  # all else is done
    (elsewhere / PLAIN / "2.run.json").write_text("mine, and longer than it was")
    assert f"{PLAIN}/2.run.json differs from the object in the bucket" in refused(pull, elsewhere, bucket)
    found = contents(elsewhere)
    assert found[f"{PLAIN}/2.run.json"] == b"mine, and longer than it was" and f"{PLAIN}/9.results.json.zst" in found
    assert {name: found[name] for name in here if "2.run.json" not in name} == {
        name: text for name, text in here.items() if "2.run.json" not in name
    }


def test_a_run_that_is_not_what_its_checksums_say_is_not_pushed(archive, bucket) -> None:
    (archive / PLAIN / "1.warmups.json.zst").write_bytes(b"changed")
    (archive / OPEN / "2.run.json").unlink()
    said = refused(push, archive, bucket)
    assert f"{PLAIN}/1.warmups.json.zst does not match its checksum in {PLAIN}/1.sha256" in said
    assert f"{OPEN}/2.sha256 lists 2.run.json, which is missing" in said
    there = bucket.objects()
    assert not [name for name in there if f"{PLAIN}/1." in name or f"{OPEN}/2." in name]
    assert f"archive/{OPEN}/1.results.json.zst" in there
    assert not [name for name in there if name.endswith(("metadata.json", "completion_time.txt"))]


@pytest.mark.parametrize("name", ["1.sha256", "1.results.json.zst", "1.warmups.json.zst"])
def test_a_pipe_among_a_run_s_files_is_not_waited_for(archive, bucket, name) -> None:
    (archive / PLAIN / name).unlink()
    os.mkfifo(archive / PLAIN / name)
    assert f"{PLAIN}/{name} is not a regular file" in refused(push, archive, bucket)
    there = bucket.objects()
    assert not [each for each in there if f"{PLAIN}/1." in each] and f"archive/{OPEN}/1.results.json.zst" in there


@pytest.mark.parametrize("damage", ["cut", "changed", "flipped", "gone", "sums"])
def test_a_damaged_run_is_not_taken(archive, elsewhere, bucket, damage) -> None:
    pushed(archive, bucket)
    whole = contents(archive)
    for folder in (PLAIN, OPEN):
        name = f"archive/{folder}/1.warmups.json.zst"
        content = bucket.objects()[name]
        other = bytes([content[0] ^ 1]) + content[1:]
        if damage == "gone":
            (bucket.folder / name).unlink()
        elif damage == "sums":
            bucket.replace(f"archive/{folder}/1.sha256", b"../../../x")
        elif damage == "flipped":
            bucket.put(name, other)  # on the server's disk
        else:
            bucket.replace(name, content[:-1] if damage == "cut" else other)
    said = refused(pull, elsewhere, bucket)
    assert said.count("is damaged in the bucket") == 2 and f"{PLAIN}/1" in said.replace(
        "run 1 of " + PLAIN, PLAIN + "/1"
    )
    # Of the campaign that is open its plan is missing, which would ask for the run again.
    left = {name for name in whole if name.startswith((f"{PLAIN}/1.", f"{OPEN}/1.", f"{OPEN}/metadata"))}
    assert contents(elsewhere) == {name: text for name, text in whole.items() if name not in left}
    shutil.rmtree(bucket.folder)
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == whole


def test_a_run_that_is_still_being_pushed_is_left_there(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    (bucket.folder / "archive" / OPEN / "1.results.json.zst").unlink()
    assert f"run 1 of {OPEN} is incomplete in the bucket" in pulled(elsewhere, bucket)
    assert not list((elsewhere / OPEN).glob("1.*")) and not (elsewhere / OPEN / "metadata.json").exists()
    assert (elsewhere / OPEN / "2.results.json.zst").exists()
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == contents(archive)


HOSTILE = [
    "../../etc/1.results.json.zst",
    "..",
    "/etc/passwd",
    "",
    "demo/here/now/100/plain/../../../../../1.results.json.zst",
    "demo/here/now/100/plain/%2E%2E",
    "demo/here/now/100/%2E%2E/metadata.json",
    "demo/here/now/100/a%2F..%2Fb/metadata.json",
    "demo/here/now/100/a%00/metadata.json",
    "demo/here//100/plain/metadata.json",
    "%64emo/here/now/100/plain/metadata.json",  # a second name of one file
    "demo/here/now/100/.hidden/metadata.json",
    "demo/here/now/100/plain/.1.part/1.results.json.zst",
    "demo/here/.now/100/plain/metadata.json",
    "_demo/here/now/100/plain/metadata.json",
    "demo/here/now/fast/plain/metadata.json",
    "demo/here/now/100/plain/.bashrc",
    "demo/here/now/100/plain/run.sh",
    "demo/here/now/config.yaml",
    "demo/here/now/_imported/../../x",
    "demo/here/now/_imported/a.md",
    "_trace_dumps/x.sh",
    "a/b/c/d/_trace_dumps/traces-1.json",
    "_trace_dumps/_trace_dumps/traces-1.json",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_an_object_leads_elsewhere(name) -> None:
    assert names.archive_path(name) is None


def test_strange_objects_stay_in_the_bucket(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    strange = [name for name in HOSTILE if name.strip("/") and not {"..", ""} & set(name.split("/"))]
    for name in strange:
        bucket.put(f"archive/{name}", b"evil")
    said = pulled(elsewhere, bucket)
    assert f"{len(strange)} objects belong to no campaign and are not pulled" in said
    assert contents(elsewhere) == contents(archive)
    assert {path.name for path in elsewhere.parent.iterdir()} == {"archive", "tables"}


def test_a_full_disk_and_a_read_only_one(archive, bucket, tmp_path) -> None:
    pushed(archive, bucket)
    with faulty_storage(tmp_path / "storage") as disk:
        root = disk.path / "archive"
        root.mkdir()
        for write in (1, 7, 20):
            disk.set(full_at=write)
            said = refused(pull, root, bucket)
            disk.set()
            assert "No space left on device" in said and "run the same command again" in said
            for results in root.glob("demo/here/*/*/*/[12].results.json.zst"):
                assert len(list(results.parent.glob(f"{results.name[0]}.*"))) == 4
        disk.set(read_only=True)
        assert "Read-only file system" in refused(pull, root, bucket)
        disk.set()
        pulled(root, bucket)
        assert contents(root) == contents(archive)


def test_two_who_push_at_once(archive, bucket, tmp_path, monkeypatch) -> None:
    (tmp_path / "other").mkdir()
    with s3.opened(bucket.declared()) as place, place.writing():
        monkeypatch.chdir(tmp_path / "other")  # another folder, or machine
        said = refused(push, archive, bucket)
        assert "is pushing to the bucket" in said and str(Path(__file__).parents[3]) in said
        assert not [name for name in bucket.objects() if name.startswith("archive/")]
    pushed(archive, bucket)


def test_who_was_killed_may_go_on_and_others_learn_whom_to_wait_for(archive, bucket, tmp_path, monkeypatch) -> None:
    with s3.opened(bucket.declared()) as place, place.writing():
        (claim,) = bucket.objects()
        content = bucket.objects()[claim]
    bucket.put(claim, content)  # as one that was killed leaves it
    (tmp_path / "other").mkdir()
    here = Path.cwd()
    monkeypatch.chdir(tmp_path / "other")
    said = refused(push, archive, bucket)
    assert json.loads(content)["since"] in said and claim in said
    monkeypatch.chdir(here)
    pushed(archive, bucket)
    monkeypatch.chdir(tmp_path / "other")
    pushed(archive, bucket)


def test_nothing_is_brought_into_a_run_that_is_being_collected(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    (elsewhere / PLAIN / ".1.part").mkdir(parents=True)
    assert "is being collected here" in pulled(elsewhere, bucket)
    assert not list((elsewhere / PLAIN).glob("1.*"))


def test_links_that_lead_out_are_neither_pushed_nor_written_through(archive, elsewhere, bucket, tmp_path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(archive / PLAIN, outside)
    before = contents(outside)
    (archive / PLAIN).with_name("linked").symlink_to(outside)
    (archive / PLAIN / "7.results.json.zst").symlink_to(outside / "1.results.json.zst")
    text = refused(push, archive, bucket)
    for name in (f"{PLAIN.removesuffix('plain')}linked", f"{PLAIN}/7.results.json.zst"):
        assert f"{name} {LEADS_OUT}" in text
    assert not [name for name in bucket.objects() if "linked" in name or "/7." in name]
    assert f"archive/{PLAIN}/1.results.json.zst" in bucket.objects()
    (elsewhere / "demo").mkdir(parents=True)
    (elsewhere / "demo/here").symlink_to(outside)
    assert f"or a folder of it {LEADS_OUT}" in refused(pull, elsewhere, bucket)
    assert contents(outside) == before
