"""What a push or a pull has done, said while it lasts and at its end."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from loadstone.publish.site.publish import counted, megabytes

_SAY_EVERY_S = 10.0

Log = Callable[[str], None]


@dataclass
class Tally:
    """Of several threads. `problems` make the command fail at its end; `notices` are worth saying."""

    log: Log
    files: int = 0
    bytes: int = 0
    same: int = 0
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _said: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def moved(self, size: int) -> None:
        """One more file was transferred."""
        with self._lock:
            self.files, self.bytes = self.files + 1, self.bytes + size
            if time.monotonic() - self._said > _SAY_EVERY_S:
                self._said = time.monotonic()
                self.log(f"so far {self.moves()}")

    def was_there(self, number: int = 1) -> None:
        with self._lock:
            self.same += number

    def problem(self, text: str) -> None:
        self.problems.append(text)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def moves(self) -> str:
        return f"{counted(self.files, 'file')} ({megabytes(self.bytes)})"
