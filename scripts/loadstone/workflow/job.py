"""What every script of a rule shares: a log, errors for people instead of tracebacks, folders.

To make jobs start faster, pandas is hidden, set-up compiles the modules that jobs import, and scipy is imported only
where an interval is computed.
"""

import base64
import os
import pickle
import signal
import sys
import threading
import traceback
import zlib
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, decode
from loadstone.archive.trace_dumps import Dump
from loadstone.config import redact
from loadstone.errors import LoadstoneError, printable
from loadstone.process import LastingStream, end_with_parents, exit_on_sigterm
from loadstone.workflow import markers

_VARIABLE = 100_000  # bytes; Linux allows 128 KiB
_INTERRUPTED = 128 + signal.SIGINT  # as in shells

Log = Callable[[str], None]


class Folders:
    """Archive, tables and reports of a job, from the parameter `folders` of its rule."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.archive, self.tables, self.reports = (Path(folders[name]) for name in ("archive", "tables", "reports"))

    def campaign(self, key: Sequence[str]) -> Campaign:
        """The campaign of a key as in wildcards."""
        return Campaign(self.archive, *map(decode, key))

    def campaigns(self, keys: Iterable[Sequence[str]]) -> list[Campaign]:
        return [self.campaign(key) for key in keys]

    def dump(self, fields: Mapping[str, Any]) -> Dump:
        """The trace dump with these fields."""
        return Dump(self.archive, **fields)


class Confidential(UserDict[str, Any]):
    """A parameter with credentials, which the script of its job gets as a dict, and Snakemake writes into no file.

    Snakemake records dicts in ``.snakemake/metadata``, and pickles every parameter into ``.snakemake/scripts``, where a
    killed command leaves it. The pickled form only names variables of the environment that the script inherits; it
    removes them, so that programs that it starts don't have them. `name` is unique among the parameters of a process.
    """

    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self._name = f"LOADSTONE_{name}"

    def __reduce__(self) -> tuple[Callable[[str, int], dict[str, Any]], tuple[str, int]]:
        content = base64.b64encode(zlib.compress(pickle.dumps(self.data))).decode()
        pieces = [content[start : start + _VARIABLE] for start in range(0, len(content), _VARIABLE)]
        os.environ.update({f"{self._name}_{number}": piece for number, piece in enumerate(pieces)})
        return _inherited, (self._name, len(pieces))

    def __deepcopy__(self, _: object) -> "Confidential":
        return self

    def __repr__(self) -> str:
        return f"Confidential({self._name})"


def _inherited(name: str, pieces: int) -> dict[str, Any]:
    content = "".join(os.environ.pop(f"{name}_{number}") for number in range(pieces))
    found: dict[str, Any] = pickle.loads(zlib.decompress(base64.b64decode(content)))  # noqa: S301 - from the parent process
    return found


class _WithoutPandas(MetaPathFinder):
    """Hides pandas, which no job uses, but which pyarrow and DuckDB import if they can: a third of a second per job."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not imported in jobs of the workflow", name=fullname)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hide it for a while. A rule file hides it from Snakemake as None, which pyarrow would take for a module."""
    hidden: dict[str, Any] = {"pandas": None} if sys.modules.get("pandas", sys) is None else {}
    for name in hidden:
        del sys.modules[name]
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(hidden)


def _end_with_command() -> None:
    """On another machine: end this process by SIGTERM when its command ends."""
    if not (path := os.environ.get(markers.FILE_VARIABLE)):
        return

    def watch() -> None:
        print(markers.wait_for_end(Path(path), os.environ[markers.VARIABLE]), file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def job(log_file: str) -> Iterator[Log]:
    """A log function that writes to the rule's log file and to the terminal.

    A LoadstoneError ends the program with exit code 1 and its text, Ctrl-C without a text; any other error is logged
    with its traceback. SIGTERM, the death of the Snakemake that started it or, on another machine, the end of its
    command ends it after all clean-up.
    """
    exit_on_sigterm()
    end_with_parents()
    _end_with_command()
    sys.stderr = LastingStream(sys.stderr)
    path = Path(log_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with without_pandas(), path.open("w", encoding="utf-8", errors="backslashreplace", buffering=1) as file:

        def log(text: str) -> None:
            text = redact.text(text)
            file.write(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {text}\n")
            print(printable(text), file=sys.stderr, flush=True)

        try:
            yield log
        except LoadstoneError as error:
            log(f"error: {error}")
            raise SystemExit(1) from None
        except KeyboardInterrupt:
            log("interrupted")
            raise SystemExit(_INTERRUPTED) from None
        except Exception:  # noqa: BLE001 - into the log, whatever it is
            log(traceback.format_exc())
            raise SystemExit(1) from None
