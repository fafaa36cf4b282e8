"""Programs end with the job that started them, however it ends, and the machine's lock is held until they have."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest
from loadstone.archive import locks
from loadstone.archive.locks import exclusive, hold
from loadstone.errors import LoadstoneError
from loadstone.process import LastingStream, Program, Supervisor, find, note_signals, run

# A job that starts a shell which leaves a grandchild behind, both of which ignore SIGTERM, while holding a lock.
JOB = """
import sys, time
from pathlib import Path
from loadstone.archive.locks import exclusive
from loadstone.process import LastingStream, Supervisor, Program
folder = Path(sys.argv[1])
script = "trap '' TERM; sleep 1000 & echo $! > grandchild; echo $$ > child; wait"
with exclusive("a test", print, folder / "lock") as lock, Supervisor(keep_open=[lock]) as supervisor:
    Program(["sh", "-c", "cd " + str(folder) + "; " + script], supervisor, folder / "log")
    time.sleep(1000)
"""


def _pid(file: Path) -> int:
    deadline = time.monotonic() + 20
    while not (file.exists() and file.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(file.read_text())


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_killed_job_and_the_lock_waits_for_that(tmp_path: Path, number: int) -> None:
    job = subprocess.Popen([sys.executable, "-c", textwrap.dedent(JOB), str(tmp_path)], stderr=subprocess.DEVNULL)
    child, grandchild = _pid(tmp_path / "child"), _pid(tmp_path / "grandchild")
    with pytest.raises(LoadstoneError, match=r"a test by .* is running here"):
        hold("another", tmp_path / "lock")
    job.send_signal(number)
    with exclusive("another", lambda _: None, tmp_path / "lock"):
        assert not _alive(child) and not _alive(grandchild)
    job.wait()


def test_two_holders_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    said = f"one by .*process {os.getpid()}"
    with exclusive("one", lambda _: None, path), pytest.raises(LoadstoneError, match=said):
        hold("two", path)
    os.close(hold("two", path))


def test_a_lock_whose_file_a_cleaner_removes_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened, removals = tmp_path / "lock", locks._open, iter([True])

    def open_and_remove(file: Path) -> int:
        descriptor = opened(file)
        if next(removals, False):
            file.unlink()
        return descriptor

    monkeypatch.setattr(locks, "_open", open_and_remove)
    with exclusive("one", lambda _: None, path):
        assert locks.is_held(path)


def test_a_lock_is_not_opened_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        hold("one", tmp_path / "lock")
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_failing_program_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    with (
        Supervisor() as supervisor,
        pytest.raises(LoadstoneError, match=r"(?s)sh ended with exit code 3.*no such thing"),
    ):
        run(["sh", "-c", "echo no such thing >&2; exit 3"], supervisor, tmp_path / "log")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is supervised")
def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\0")
    (tmp_path / "text").chmod(0o755)
    with Supervisor() as supervisor, pytest.raises(LoadstoneError, match="text can't be started: Exec format error"):
        run([str(tmp_path / "text")], supervisor, tmp_path / "log", supervised=True)


def test_a_missing_program_is_named_with_its_remedy() -> None:
    with pytest.raises(LoadstoneError, match="'no-such-program' was not found; `make setup`"):
        find("no-such-program")


def test_arguments_reach_the_program_as_they_are(tmp_path: Path) -> None:
    hostile = "$(touch x); `id` \"'&|"
    with Supervisor() as supervisor:
        run(["printf", "%s", hostile], supervisor, tmp_path / "log")
    assert (tmp_path / "log").read_text() == hostile


def test_stopping_ends_a_stubborn_program(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        program = Program(
            ["sh", "-c", "trap '' TERM; echo up; sleep 1000 & wait; sleep 1000"], supervisor, tmp_path / "log"
        )
        while "up" not in program.tail():
            time.sleep(0.01)
        program.stop(grace_s=0.2)
        assert program.exit_code() == -signal.SIGKILL


def test_the_handler_of_sigterm_may_take_a_lock_that_the_interrupted_code_holds() -> None:
    former, lock, came = signal.getsignal(signal.SIGTERM), threading.Lock(), threading.Event()

    def handler(*_: object) -> None:
        if lock.acquire(timeout=20):  # Snakemake's own waits forever
            came.set()

    try:
        signal.signal(signal.SIGTERM, handler)
        note_signals()
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
        assert came.wait(20)
    finally:
        signal.signal(signal.SIGTERM, former)


def test_a_stream_without_a_reader_drops_what_is_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as plain:
        stream = LastingStream(plain)
        assert stream.write("one") == 3
        stream.flush()
        assert os.read(reading, 10) == b"one"
        os.close(reading)
        for _ in range(2):
            print("two", file=stream, flush=True)
        assert subprocess.run(["echo", "three"], stdout=writing, check=True).returncode == 0
        assert not stream.isatty()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_noted_and_do_what_they_did(number: signal.Signals) -> None:
    former = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    came: list[int] = []
    try:
        for each in former:
            signal.signal(each, lambda number, _: came.append(number))
        noted = note_signals()
        os.kill(os.getpid(), number)
        deadline = time.monotonic() + 20
        while not came and time.monotonic() < deadline:
            time.sleep(0.01)
        assert noted == came == [number]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        note_signals()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


# A daemon as programs make them: in a session of its own, without its parent, its environment and its descriptors.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("daemon", "w").write(str(os.getpid()))
time.sleep(1000)
"""
DAEMON = f"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        os.execve(sys.executable, ["daemon", "-c", {STUBBORN!r}], {{}})
    os._exit(0)
while not os.path.exists("daemon") or not os.path.getsize("daemon"):
    time.sleep(0.01)
open("up", "w").write(str(os.getpid()))
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
def test_a_daemon_of_a_supervised_program_ends_with_it(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        for after_s in (0, 1000):
            command = [sys.executable, "-c", DAEMON, str(after_s)]
            program = Program(command, supervisor, tmp_path / "log", folder=tmp_path, supervised=True)
            daemon, pid = _pid(tmp_path / "daemon"), _pid(tmp_path / "up")
            name = psutil.Process(daemon).name()
            assert pid == program.pid and os.getpgid(daemon) != pid
            if after_s:
                assert _alive(daemon) and program.exit_code() is None
                program.stop()
            else:
                assert program.wait() == 0
            assert not _alive(daemon) and program.left == [f"{name} (process {daemon})"]
            assert f"{name} (process {daemon})" in program.tail()
            (tmp_path / "daemon").unlink()
            (tmp_path / "up").unlink()
        assert program.exit_code() == -signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
def test_a_program_whose_supervisor_is_killed_is_ended_too(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        program = Program(["sleep", "1000"], supervisor, tmp_path / "log", supervised=True)
        os.kill(psutil.Process(program.pid).ppid(), signal.SIGKILL)
        deadline = time.monotonic() + 20
        while program.exit_code() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert _alive(program.pid), "nobody has ended it yet"
        program.stop()
        assert not _alive(program.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_so_it_does_when_the_job_is_killed_and_the_lock_waits_for_that(tmp_path: Path, number: int) -> None:
    program = f'[sys.executable, "-c", {DAEMON!r}, "1000"]'
    start = f'Program({program}, supervisor, folder / "log", folder=folder, supervised=True)'
    code = "\n".join(f"    {start}" if "Program([" in line else line for line in JOB.splitlines())
    job = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.DEVNULL)
    daemon, program = _pid(tmp_path / "daemon"), _pid(tmp_path / "up")
    name = psutil.Process(daemon).name()
    job.send_signal(number)
    with exclusive("another", lambda _: None, tmp_path / "lock"):
        assert not _alive(daemon) and not _alive(program)
    assert f"ended what it had left running: {name} (process {daemon})" in (tmp_path / "log").read_text()
    job.wait()
