"""What can go wrong outside: told plainly, with the former publication whole and no credential in any text."""

import os
import subprocess
from pathlib import Path

import pytest
from loadstone.errors import LoadstoneError
from loadstone.publish.site.publish import configured_destination, preview, publish
from support.sites import BranchReader, FolderReader, destination, files_of, git, read_as_reader, write_site
from support.storage import SECRET


def said_of(reports: Path, where, *, dry: bool = False) -> str:
    """The text of the error."""
    with pytest.raises(LoadstoneError) as error:
        preview(reports, where) if dry else publish(reports, where, log=lambda _: None)
    return str(error.value)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    write_site(tmp_path / "reports", says="first")
    return tmp_path / "reports"


def test_no_destination_and_no_site(tmp_path) -> None:
    with pytest.raises(LoadstoneError, match="publish is missing in"):
        configured_destination(None)
    assert "there is no site" in said_of(tmp_path, destination(FolderReader(tmp_path)))


def mounted(folder: Path, *options: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"can't mount: {done.stderr.decode()}")


def test_a_full_disk(tmp_path, reports) -> None:
    reader = FolderReader(tmp_path)
    mounted(reader.root, "-o", "size=300k")
    try:
        publish(reports, destination(reader), log=lambda _: None)
        old = files_of(reports)
        (reports / "assets/vega.js").write_text("more than there is room for" * 20_000)
        text = said_of(reports, destination(reader))
        assert "No space left on device" in text and "is unchanged" in text
        assert read_as_reader(reader.files()) == old
        assert not list(reader.root.glob(".loadstone/*.tmp"))
        (reports / "assets/vega.js").write_text("less")
        publish(reports, destination(reader), keep=1, log=lambda _: None)
        assert read_as_reader(reader.files()) == files_of(reports)
    finally:
        subprocess.run(["umount", str(reader.root)], check=True)


def test_a_folder_that_may_not_be_written(tmp_path, reports) -> None:
    reader = FolderReader(tmp_path)
    mounted(reader.root, "-o", "ro")
    try:
        assert "Read-only file system" in said_of(reports, destination(reader))
    finally:
        subprocess.run(["umount", str(reader.root)], check=True)
    reader.root.rmdir()
    reader.root.write_text("")
    assert "is not a folder" in said_of(reports, destination(reader))


def test_storage_without_credentials_or_with_wrong_ones(bucket, reports, monkeypatch) -> None:
    where = destination(bucket())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong" + SECRET)
    texts = [said_of(reports, where, dry=dry) for dry in (True, False)]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    texts += [said_of(reports, where, dry=dry) for dry in (True, False)]
    for text in texts:
        assert "AWS_ACCESS_KEY_ID" in text and "AWS_PROFILE" in text
        assert SECRET not in text


def test_storage_with_the_credentials_of_a_profile(bucket, reports, tmp_path, monkeypatch) -> None:
    reader = bucket()
    key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"
    file.write_text(f"[mine]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    said: list[str] = []
    assert publish(reports, destination(reader), log=said.append)
    assert read_as_reader(reader.files()) == files_of(reports)
    assert secret not in "".join(said)


def test_storage_that_is_away_or_has_no_such_bucket(bucket, reports) -> None:
    reader = bucket()
    away = configured_destination({**reader.declared, "endpoint": "http://127.0.0.1:1"})
    assert "connect" in said_of(reports, away)
    missing = configured_destination({**reader.declared, "bucket": "no-such-bucket"})
    assert "no-such-bucket" in said_of(reports, missing)
    assert "no-such-bucket" in said_of(
        reports, configured_destination({**reader.declared, "bucket": "no-such-bucket", "prefix": ""})
    )


def test_servers_are_told_what_files_are_and_how_long_they_last(bucket, reports) -> None:
    reader = bucket()
    publish(reports, destination(reader), log=lambda _: None)
    files = reader.files()
    for name in files:
        told = reader.told(name)
        kind = {"html": "text/html", "js": "text/javascript", "json": "application/json"}[name.rpartition(".")[2]]
        assert told["Content-Type"].partition(";")[0] == kind
        is_final = name.startswith("releases/2")
        assert told["Cache-Control"] == ("public, max-age=31536000, immutable" if is_final else "no-cache")
    (reports / "index.html").write_text("Made by Loadstone anew")
    publish(reports, destination(reader), log=lambda _: None)  # most of it is copied there, headers included
    (copied,) = [name for name in reader.files() if name.endswith("assets/vega.js") and name not in files]
    assert reader.told(copied)["Cache-Control"].endswith("immutable")
    assert reader.told(copied)["Content-Type"].startswith("text/javascript")


def test_a_remote_that_is_away(tmp_path, reports) -> None:
    reader = BranchReader(tmp_path)
    where = configured_destination({**reader.declared, "remote": "http://user:hunter2@127.0.0.1:1/x.git"})
    text = said_of(reports, where)
    assert "127.0.0.1" in text and "hunter2" not in text
    text = said_of(reports, configured_destination({**reader.declared, "remote": "upstream"}))
    assert "upstream" in text
    elsewhere = configured_destination({"to": "branch", "repository": tmp_path / "reports"})
    assert "needs a git repository" in said_of(reports, elsewhere)


def test_a_remote_that_refuses(tmp_path, reports) -> None:
    reader = BranchReader(tmp_path)
    hook = reader.remote / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'this branch is protected' >&2\nexit 1\n")
    hook.chmod(0o755)
    assert "this branch is protected" in said_of(reports, destination(reader))
    assert reader.commits() == []


def test_what_the_user_works_with_is_not_touched(tmp_path, reports, monkeypatch) -> None:
    reader = BranchReader(tmp_path)
    checkout = reader.checkout
    (checkout / "paper.tex").write_text("1")
    git(checkout, "add", "paper.tex")
    git(checkout, "commit", "--quiet", "-m", "start")
    git(checkout, "checkout", "--quiet", "-b", "gh-pages")  # a branch of this name of their own
    (checkout / "paper.tex").write_text("2")
    (checkout / "staged.tex").write_text("3")
    git(checkout, "add", "staged.tex")
    hook = checkout / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))  # where nobody has said who they are
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def state() -> tuple[str, ...]:
        # Git itself notes where a remote's branch is when it has pushed there.
        listed = git(checkout, "for-each-ref").splitlines()
        refs = [line for line in listed if "refs/loadstone/" not in line and "refs/remotes/" not in line]
        return (git(checkout, "status", "--porcelain=v2", "--branch"), git(checkout, "ls-files", "--stage"), *refs)

    before = state()
    for says in ("first", "second"):
        write_site(reports, says=says)
        assert publish(reports, destination(reader), log=lambda _: None)
    assert state() == before
    assert not (checkout / ".git/FETCH_HEAD").exists()
    assert read_as_reader(reader.files()) == files_of(reports)
    assert len(reader.commits()) == 2


def test_a_prefix_leaves_the_rest_of_a_branch_alone(tmp_path, reports) -> None:
    reader = BranchReader(tmp_path)
    reader.put("index.html", b"the project's own")
    reader.put("docs/a.md", b"too")
    assert publish(reports, configured_destination({**reader.declared, "prefix": "results"}), log=lambda _: None)
    files = reader.files()
    assert files["index.html"] == b"the project's own" and files["docs/a.md"] == b"too"
    below = {name.removeprefix("results/"): text for name, text in files.items() if name.startswith("results/")}
    assert read_as_reader(below) == files_of(reports)


def test_from_a_folder_below_the_repository_s_root(tmp_path, reports) -> None:
    reader = BranchReader(tmp_path)
    reader.declared["repository"] = reader.checkout / "below"
    reader.declared["repository"].mkdir()
    assert publish(reports, destination(reader), log=lambda _: None)
    assert not publish(reports, destination(reader), log=lambda _: None)
    assert read_as_reader(reader.files()) == files_of(reports)


def test_another_machine_goes_on_where_the_first_left_off(tmp_path, reports) -> None:
    reader = BranchReader(tmp_path)
    publish(reports, destination(reader), log=lambda _: None)
    git(tmp_path, "clone", "--quiet", reader.remote, tmp_path / "elsewhere")
    git(tmp_path / "elsewhere", "gc", "--quiet", "--prune=now")
    reader.declared["repository"] = tmp_path / "fresh"
    git(tmp_path, "init", "--quiet", tmp_path / "fresh")
    git(tmp_path / "fresh", "remote", "add", "origin", reader.remote)
    before = git(tmp_path / "fresh", "count-objects")
    assert "already has this site" in preview(reports, destination(reader))[0]
    assert git(tmp_path / "fresh", "count-objects") == before  # a look leaves nothing
    (reports / "index.html").write_text("Made by Loadstone anew")
    said: list[str] = []
    assert publish(reports, destination(reader), log=said.append)
    assert "2 files to transfer" in said[1]
    assert read_as_reader(reader.files()) == files_of(reports)
