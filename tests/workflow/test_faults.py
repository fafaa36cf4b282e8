"""What a machine can do to a sweep and to its archive. What its storage can do is in tests/faults/."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.checkout import PROJECT, Checkout, free_ports
from support.clock import Clock

SERVER = PROJECT / "tests/support/server.py"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")


@pytest.fixture
def checkout(pristine: Path, tmp_path: Path) -> Checkout:
    return Checkout(pristine, tmp_path / "checkout", variants=["only"], rates=[100], runs=2, timeout="1s")


def declare(checkout: Checkout, *options: str, host: str = "127.0.0.1", again: bool = False, **sweep: Any) -> Checkout:
    """Open a sweep of the little server; with `again` it is started anew whenever it dies."""
    (port,) = free_ports(1)
    served = checkout.path / "served"
    served.mkdir()
    command = [sys.executable, str(SERVER), str(port), str(served), *options]
    if again:
        command = ["sh", "-c", f"while :; do {shlex.join(command)}; done"]
    server = {"command": command, "port": port, "ready": f"http://127.0.0.1:{port}/ready"}
    expect = {"status": 200, "body_contains": "the page"}
    variant = {"url": f"http://{host}:{port}/page", "processes": ["server"], "expect": expect}
    target = {"processes": {"server": server}, "variants": {"only": variant}, "ready_timeout": "5s"}
    checkout.configure(sweep=sweep, target=target)
    checkout.run("--cores", "1", "open")
    return checkout


def rows(checkout: Checkout, query: str) -> list[tuple]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout.path)
        with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
            return database.sql(query).fetchall()


def derived(checkout: Checkout) -> dict[str, bytes]:
    tables = checkout.path / "results/tables"
    return {str(file.relative_to(tables)): file.read_bytes() for file in sorted(tables.rglob("*.parquet"))}


# --- the machine's clock ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_the_clock_jumps_by_an_hour(checkout: Checkout, tmp_path: Path, monkeypatch, jump_s: int) -> None:
    declare(checkout, rates=[50, 100])
    clock = Clock(tmp_path / "clock")
    for name, text in clock.environment.items():
        monkeypatch.setenv(name, text)
    process = checkout.start("--cores", "all", "attacks")
    while process.poll() is None and not checkout.results():
        time.sleep(0.01)
    jumped = time.time()
    clock.jump(jump_s)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert len(checkout.results()) == 4
    ended = [json.loads(file.read_text())["ended"] for file in checkout.campaign.rglob("*.run.json")]
    instants = [datetime.fromisoformat(text).timestamp() for text in ended]
    assert any(abs(instant - jumped - jump_s) < 600 for instant in instants), "the clock did not jump"
    for file in checkout.path.glob("r*s/**/*"):  # the file system's clock jumps too
        if (written := file.stat().st_mtime) > jumped:
            os.utime(file, (written + jump_s, written + jump_s))
    checkout.run("--cores", "all")  # by the clock that has jumped
    assert rows(checkout, "SELECT run, problems FROM runs WHERE excluded") == []
    before, tables = checkout.contents(), derived(checkout)
    monkeypatch.delenv("PYTHONPATH")
    checkout.run("--cores", "all")  # and by the right one
    assert set(checkout.jobs("--cores", "all")) <= {"all"}
    assert checkout.contents() == before and derived(checkout) == tables


def test_the_clock_is_set_back_after_a_sweep(checkout: Checkout) -> None:
    def set_back() -> None:
        for file in checkout.path.glob("r*s/**/*"):
            os.utime(file, (time.time() + 3600,) * 2)

    declare(checkout)
    checkout.run("--cores", "all", "attacks")
    set_back()
    checkout.run("--cores", "all")
    set_back()
    checkout.run("--cores", "all", "--forcerun", "index")  # of all pages and tables
    assert set(checkout.jobs("--cores", "all")) <= {"all"}


# --- the target and the way to it ------------------------------------------------------------------------------------


def test_the_target_restarts_during_the_attack(checkout: Checkout) -> None:
    declare(checkout, "--die-after", "40", again=True, duration="1s", runs=1)
    checkout.run("--cores", "all")
    ((requests,),) = rows(checkout, "SELECT requests FROM runs")
    causes = rows(checkout, "SELECT side, sum(count) FROM error_causes GROUP BY side")
    assert requests >= 99 and dict(causes).keys() == {"server"}, causes


def test_the_target_answers_slowly_for_ever(checkout: Checkout) -> None:
    declare(checkout, "--slow-after", "60", duration="1s", runs=1)
    checkout.run("--cores", "all")
    ((requests, slow),) = rows(checkout, "SELECT r.requests, c.n_timeouts FROM runs r, cells c")
    ((cause, count),) = rows(checkout, "SELECT cause, sum(count) FROM error_causes GROUP BY cause")
    assert requests >= 99 and 0 < count == slow < requests, cause
    checkout.wait_idle()


@ROOT
def test_names_can_no_longer_be_resolved(checkout: Checkout, tmp_path: Path) -> None:
    hosts, resolver = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text("127.0.0.1 localhost target.test\n")
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    shadow = f"mount --bind {hosts} /etc/hosts && mount --bind {resolver} /etc/resolv.conf && exec "

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = shlex.join([".venv/bin/snakemake", *arguments])
        options = {"cwd": checkout.path, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", shadow + command], **options)  # type: ignore[call-overload]

    declare(checkout, host="target.test", runs=3)
    process = start("--cores", "all", "attacks")
    while process.poll() is None and not checkout.results():
        time.sleep(0.01)
    hosts.write_text("127.0.0.1 localhost\n")
    output, _ = process.communicate(timeout=600)
    collected = len(checkout.results())
    assert process.returncode != 0 and 1 <= collected < 3
    assert "target.test" in output and "Traceback" not in output
    kept = {file: digest for file, digest in checkout.contents().items() if file.endswith(".json.zst")}
    hosts.write_text("127.0.0.1 localhost target.test\n")
    process = start("--cores", "all", "attacks")
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert len(checkout.results()) == 3 and kept.items() <= checkout.contents().items()


# --- the load generator ----------------------------------------------------------------------------------------------


def test_the_generator_is_out_of_file_descriptors(checkout: Checkout) -> None:
    declare(checkout, "--slow-after", "20", rates=[400], duration="1s", runs=1, timeout="2s")
    limit = 200
    command = ["prlimit", f"--nofile={limit}:{limit}", ".venv/bin/snakemake", "--cores", "all"]
    found = subprocess.run(command, cwd=checkout.path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    causes = dict(rows(checkout, "SELECT cause, side FROM error_causes"))
    assert causes.get("file_descriptors") == "client", causes
    ((problems,),) = rows(checkout, "SELECT list(tag) FROM suggestions")
    assert "GENERATOR_LIMITED" in problems


# --- the checkout and its archive ------------------------------------------------------------------------------------


def test_a_checkout_that_was_moved_has_nothing_to_do(collected: Checkout, tmp_path: Path) -> None:
    checkout = collected.copy(tmp_path / "before")
    checkout.run("--cores", "all")
    tables, before = derived(checkout), checkout.contents()
    checkout.path = checkout.path.rename(tmp_path / "after")
    assert set(checkout.jobs("--cores", "all")) <= {"all"}
    checkout.run("--cores", "all")
    assert derived(checkout) == tables and checkout.contents() == before


@pytest.mark.parametrize("instant", [1_000_000_000, 2_500_000_000], ids=["past", "future"])
def test_an_archive_from_a_backup(collected: Checkout, tmp_path: Path, instant: int) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    checkout.run("--cores", "all")
    tables, before = derived(checkout), checkout.contents()
    restored = checkout.archive.rename(tmp_path / "backup")
    shutil.copytree(restored, checkout.archive, copy_function=shutil.copy)
    for file in checkout.archive.rglob("*"):
        os.utime(file, (instant, instant))
    checkout.run("--cores", "all")
    assert derived(checkout) == tables and checkout.contents() == before
    assert set(checkout.jobs("--cores", "all")) <= {"all"}


def test_an_archive_checked_out_by_git(collected: Checkout, pristine: Path, tmp_path: Path) -> None:
    collected.run("--cores", "all")
    repository = tmp_path / "archive"
    shutil.copytree(collected.archive, repository)
    git = ["git", "-C", str(repository), "-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "results"]):
        subprocess.run([*git, *arguments], check=True)
    checkout = Checkout(pristine, tmp_path / "checkout")
    for name in ("config.yaml", "variants.yaml"):
        shutil.copy(collected.path / "config" / name, checkout.path / "config" / name)
    checkout.archive.parent.mkdir(exist_ok=True)
    subprocess.run(["git", "clone", "-q", str(repository), str(checkout.archive)], check=True)
    for file in checkout.archive.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    checkout.run("--cores", "all")
    assert set(checkout.jobs("--cores", "all")) <= {"all"}
    assert derived(checkout) == derived(collected)


@pytest.mark.parametrize("records", ["of a version to come", "of the first version", "torn"])
def test_snakemake_was_another_version(collected: Checkout, tmp_path: Path, records: str) -> None:
    checkout = collected.copy(tmp_path / "checkout")
    checkout.run("--cores", "all")
    tables, before = derived(checkout), checkout.contents()
    files = [file for file in (checkout.path / ".snakemake/metadata").rglob("*") if file.is_file()]
    assert files
    for file in files:
        record = json.loads(file.read_text())
        if records == "torn":
            file.write_text(file.read_text()[:20])
        elif records == "of the first version":  # which had no version, and fewer keys
            file.write_text(json.dumps({key: record[key] for key in ("code", "rule", "input", "log") if key in record}))
        else:
            file.write_text(json.dumps({**record, "record_format_version": 99, "something": "new"}))
    assert "collect" not in checkout.jobs("--cores", "all")
    checkout.run("--cores", "all")
    assert derived(checkout) == tables and checkout.contents() == before
    assert set(checkout.jobs("--cores", "all")) <= {"all"}


# --- other users -----------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's."""
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(checkout: Checkout, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Snakemake as a user without rights, who sees of the home folder what Python needs alone."""
    home, python, own = Path.home(), Path(sys.base_prefix), checkout.path.parent / "home"
    own.mkdir(exist_ok=True)
    os.chown(own, 65534, 65534)
    lines = ["set -e", "umask 022"]
    if python.is_relative_to(home):
        kept = shlex.quote(str(checkout.path.parent / "python"))
        lines += [f"mkdir -p {kept}", f"mount --bind {shlex.quote(str(python))} {kept}", f"mount -t tmpfs tmpfs {home}"]
        lines += [f"mkdir -p {shlex.quote(str(python))}", f"mount --bind {kept} {shlex.quote(str(python))}"]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"HOME={own}"]
    lines.append(f"exec {shlex.join([*user, '.venv/bin/snakemake', *arguments])}")
    command = ["unshare", "--mount", "sh", "-c", "\n".join(lines)]
    return subprocess.run(command, cwd=checkout.path, capture_output=True, text=True, check=False)


@ROOT
def test_two_users_of_one_checkout(collected: Checkout, elsewhere: Path) -> None:
    checkout = collected.copy(elsewhere / "checkout")
    checkout.run("--cores", "all")
    tables, before = derived(checkout), checkout.contents()
    (checkout.campaign / "completion_time.txt").unlink()
    before.pop(next(name for name in before if name.endswith("completion_time.txt")))
    found = as_nobody(checkout, "--cores", "all")
    said = found.stdout + found.stderr
    assert found.returncode != 0 and re.search(r"[Pp]ermission|not allowed|may not", said), said
    assert "Traceback" not in said, said[-2500:]
    assert checkout.contents() == before and derived(checkout) == tables


@ROOT
def test_two_users_of_one_machine(pristine: Path, collected: Checkout, elsewhere: Path) -> None:
    del collected  # so the machine's lock is there, and the other user's
    checkout = Checkout(pristine, elsewhere / "checkout", variants=["plain"], runs=1)
    subprocess.run(["chown", "-R", "65534:65534", str(elsewhere)], check=True)
    for arguments in (["--cores", "1", "open"], ["--cores", "all"]):
        found = as_nobody(checkout, *arguments)
        assert found.returncode == 0, found.stdout + found.stderr
    assert len(checkout.results()) == 1
