"""Starting other programs, so that none of them outlives its job. The only module that does so.

No shell is involved: commands are lists of arguments.
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

import psutil

from loadstone.errors import LoadstoneError
from loadstone.supervisor import ENDED

# Programs that `make setup` does not install.
OPTIONAL = ("k6", "artillery")

_PROJECT_TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "bin"


def find(program: str) -> str:
    """The path of a program: a path as given, else from the project's tools, this Python's folder or PATH.

    Raises LoadstoneError when it is not found.
    """
    if os.sep in program:
        found = shutil.which(program)
    else:
        folders = [str(_PROJECT_TOOLS), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        found = shutil.which(program, path=os.pathsep.join(folders))
    if found is None:
        remedy = "" if os.sep in program else "; `make setup` installs Loadstone's own programs"
        if program in OPTIONAL:
            remedy = f"; `make {program}` installs it"
        raise LoadstoneError(f"the program {program!r} was not found{remedy}")
    return found


_SUPERVISOR = [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py"))]


class Supervisor:
    """Ends process groups when this process ends, however it ends. One per job, closed with it."""

    def __init__(self, keep_open: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            _SUPERVISOR,
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=keep_open,
        )
        assert self._process.stdin is not None
        self._descriptor = self._process.stdin.fileno()

    def register_self(self, *, supervises: bool = False) -> None:
        """Called in the child between fork and exec, so that it is registered before it runs."""
        os.setsid()
        os.write(self._descriptor, b"%c%d\n" % (b"*" if supervises else b"+", os.getpid()))

    def forget(self, group: int) -> None:
        os.write(self._descriptor, b"-%d\n" % group)

    def close(self) -> None:
        """End all groups that are still registered, and wait until they are gone."""
        self._process.communicate()

    def __enter__(self) -> "Supervisor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sending(Protocol):
    """A running load generator: a `Program`, or several that act as one. `started_s` may be in the future."""

    @property
    def started_s(self) -> float: ...
    @property
    def command(self) -> list[str]: ...
    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids on this machine."""

    def exit_code(self) -> int | None:
        """None while it runs. Raises RunFailedError when one of several has failed."""

    def stop(self) -> None:
        """End it, if it is running; afterwards none of its processes runs."""

    def tail(self) -> str:
        """The last lines it printed."""


class Program:
    """A running program with its process group. `log` receives its output.

    If `supervised`, what it starts ends with it also in other sessions; `left` has the names of those, once it has
    ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        supervisor: Supervisor,
        log: Path,
        *,
        stdin: IO[bytes] | int | None = None,
        stdout: int | None = None,
        environment: Mapping[str, str | None] | None = None,
        core: int | None = None,
        most_bytes: int | None = None,
        folder: Path | None = None,
        supervised: bool = False,
    ) -> None:
        """Start it; `environment` is added to this process' variables, where None removes a variable.

        It runs in `folder`, only on the processor `core`, if one is given, and may use `most_bytes` of memory.
        """

        def prepare() -> None:
            supervisor.register_self(supervises=self._supervised)
            if core is not None:
                os.sched_setaffinity(0, {core})
            if most_bytes is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))

        variables = {**os.environ, **(environment or {})}
        self.command = [find(command[0]), *command[1:]]
        self.log = log
        self.left: list[str] = []
        self._supervisor = supervisor
        self._supervised = supervised and sys.platform == "linux"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.started_s = time.monotonic()
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(log.open("ab"))
            full, reports = self.command, []
            if self._supervised:
                reading, writing = os.pipe()
                self._report = open(reading, encoding="utf-8", errors="replace")  # noqa: PTH123, SIM115 - until it ends
                stack.callback(os.close, writing)
                full, reports = [*_SUPERVISOR, str(writing), *self.command], [writing]
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                full,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output if stdout is None else stdout,
                stderr=output,
                cwd=folder,
                env={name: value for name, value in variables.items() if value is not None},
                pass_fds=reports,
                preexec_fn=prepare,  # noqa: PLW1509 - only setsid, write and sched_setaffinity, all async-signal-safe
            )

        # After the descriptor's other end is closed here: the report ends with the supervisor.
        self.pid = int(self._report.readline() or self._process.pid) if self._supervised else self._process.pid

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.pid,)

    @property
    def stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for the end of the program; other processes of its group are ended too."""
        code = self._process.wait()
        self._end_group()
        return code

    def stop(self, grace_s: float = 3.0) -> None:
        """SIGTERM, then SIGKILL after the grace time; returns when it is gone.

        The supervisor's own grace time applies where there is one.
        """
        if self._supervised:
            self._process.terminate()
            self._process.wait()
        elif self._process.poll() is None:
            _signal_group(self.pid, signal.SIGTERM)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                _signal_group(self.pid, signal.SIGKILL)
                self._process.wait()
        self._end_group()

    def tail(self, lines: int = 8) -> str:
        """The last lines it printed, for error messages."""
        return tail(self.log, lines)

    def _end_group(self) -> None:
        if self._supervised:
            with self._report:
                *self.left, last = self._report.read().splitlines() or [""]
            if last != ENDED and self.pid != self._process.pid:  # its supervisor was killed
                _kill_group(self.pid)
        else:
            _signal_group(self.pid, signal.SIGKILL)
        self._supervisor.forget(self._process.pid)


def _kill_group(group: int, timeout_s: float = 3.0) -> None:
    """SIGKILL; returns when it is gone, since the next program may need its port."""
    deadline = time.monotonic() + timeout_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:
            os.killpg(group, signal.SIGKILL)
            time.sleep(0.01)


# As `python -m` with one more folder of modules, which PYTHONPATH would pass on to what the module starts.
_BEGIN = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_module(sys.argv[2], run_name='__main__')"


class Detached:
    """A Python module in a separate process, which notices the end of this one by the end of its input.

    `order` is its first line of input, as JSON. It survives Ctrl-C and the death of this process.
    """

    def __init__(self, module: str, order: Mapping[str, Any], keep_open: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(Path(__file__).resolve().parents[1]), module],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
            pass_fds=keep_open,
        )
        self._order = json.dumps(order).encode() + b"\n"

    def begin(self) -> None:
        """Send its order, for which it waits."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died; `finish` returns its exit code
            self._process.stdin.write(self._order)
            self._process.stdin.flush()

    def finish(self) -> int:
        """Close its input and wait for its end; returns its exit code."""
        self._process.communicate()
        return self._process.returncode


def tail(log: Path, lines: int, longest: int = 4000) -> str:
    """The last lines of a log, at most `longest` bytes; empty when it can't be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - longest))
            text = file.read(longest).decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def run(command: Sequence[str], supervisor: Supervisor, log: Path, **options: Any) -> None:
    """Run a program to its end. Raises LoadstoneError with its output when it fails."""
    program = Program(command, supervisor, log, **options)
    try:
        code = program.wait()
    except BaseException:
        program.stop()
        raise
    check(program, code)


def output_of(command: Sequence[str]) -> str:
    """The output of a short command; empty when it fails or takes over ten seconds."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).decode(errors="replace") if done.returncode == 0 else ""


def ask(
    command: Sequence[str], *, stdin: IO[bytes] | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end and capture its output; `environment` is added to this process' variables."""
    return subprocess.run(
        [find(command[0]), *command[1:]],
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        capture_output=True,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def check(program: Sending, code: int) -> None:
    """Raise LoadstoneError when `code` is not 0."""
    if code:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        name = Path(program.command[0]).name
        raise LoadstoneError(f"{name} {how}:\n{program.tail() or '(it printed nothing)'}")


def end_with_parents() -> None:
    """Make this process end (by SIGTERM, so that clean-up runs) when Snakemake, which started it, is killed.

    Watches all ancestors up to the topmost one that is Snakemake; without any, the direct parent.
    """
    ancestors = psutil.Process().parents()
    last = max((index for index, process in enumerate(ancestors) if _is_snakemake(process)), default=0)
    watched = ancestors[: last + 1]

    def watch() -> None:
        while all(map(_is_running, watched)):
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def exit_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit, so that every ``finally`` runs; a second one during clean-up is ignored."""

    def leave(number: int, _: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def note_signals() -> list[int]:
    """A list to which SIGINT and SIGTERM are added when they arrive; their effects stay as they are.

    The handler of SIGTERM runs in a thread: Snakemake's takes a lock that the interrupted code may hold.
    """
    noted: list[int] = []

    def keep(number: int, handler: Callable[[int, FrameType | None], Any]) -> None:
        def note(number: int, frame: FrameType | None) -> None:
            noted.append(number)
            if number == signal.SIGTERM:
                threading.Thread(target=handler, args=(number, None)).start()
            else:
                handler(number, frame)

        signal.signal(number, note)

    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(handler := signal.getsignal(number)):
            keep(number, handler)
    return noted


class LastingStream:
    """A text stream that drops what is written once nobody reads it, as when `| tee` was killed.

    Else the first message would end a sweep, or leave Snakemake waiting forever for a job whose end it can't report.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop it."""
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or drop it."""
        with self._dropping():
            self._stream.flush()

    @contextlib.contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # also for processes that inherit the descriptor
            with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - a device
                os.dup2(nowhere.fileno(), self._stream.fileno())


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _is_snakemake(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return any("snakemake" in part for part in process.cmdline())
    return False


def _is_running(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
