"""What every entry point of a rule has around its one call: a log, errors for people instead of tracebacks, folders.

For the sake of a job's start pandas is hidden, set-up compiles all modules, and scipy is imported where an interval is
computed.
"""

import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, decode
from loadstone.archive.trace_dumps import Dump
from loadstone.errors import LoadstoneError, printable
from loadstone.process import end_with_parents, exit_on_sigterm

_INTERRUPTED = 128 + signal.SIGINT  # as shells have it

Log = Callable[[str], None]


class Folders:
    """Archive, tables and reports of a job, from the parameter `folders` of its rule, and what is named in them."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.archive, self.tables, self.reports = (Path(folders[name]) for name in ("archive", "tables", "reports"))

    def campaign(self, key: Sequence[str]) -> Campaign:
        """By app, host and timestamp as wildcards have them."""
        return Campaign(self.archive, *map(decode, key))

    def campaigns(self, keys: Iterable[Sequence[str]]) -> list[Campaign]:
        return [self.campaign(key) for key in keys]

    def dump(self, fields: Mapping[str, Any]) -> Dump:
        """By the fields of a trace dump."""
        return Dump(self.archive, **fields)


class _WithoutPandas(MetaPathFinder):
    """Nothing here uses pandas, but pyarrow and DuckDB import it where they find it: a third of a second per job."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not imported in jobs of the workflow", name=fullname)


@contextmanager
def job(log_file: str, *, show: bool = True) -> Iterator[Log]:
    """A log function that writes to the rule's log file and, if `show`, to the terminal.

    A LoadstoneError ends the program with exit code 1 and its text, Ctrl-C without one; anything else leaves its
    traceback in the log as well. SIGTERM, or the death of the Snakemake that started it, ends it with all clean-up
    done.
    """
    exit_on_sigterm()
    end_with_parents()
    sys.meta_path.insert(0, _WithoutPandas())
    path = Path(log_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="backslashreplace", buffering=1) as file:

        def log(text: str) -> None:
            file.write(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {text}\n")
            if show:
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
