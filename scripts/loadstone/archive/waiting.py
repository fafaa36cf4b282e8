"""Saying for whom one waits: at once when it is another, else at growing distances, so that no log is flooded."""

import time
from collections.abc import Callable

_FIRST_S, _LONGEST_S = 60.0, 3600.0


class Waiting:
    """One wait; `clock` gives seconds."""

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._who: object = None
        self._since = self._next = self._pause_s = 0.0

    def over(self) -> bool:
        """What is said next is said of another wait. Whether anything was said of this one."""
        waited, self._who = self._who is not None, None
        return waited

    def say(self, who: object, text: str) -> None:
        """To be called at every look: `text` is said when `who` is another than the last time, or after a while."""
        now = self._clock()
        if self._who is None:
            self._since = now
        if who != self._who:
            self._pause_s = _FIRST_S
        elif now < self._next:
            return
        else:
            self._pause_s = min(2 * self._pause_s, _LONGEST_S)
            text += f" (for {(now - self._since) / 60:.0f} min)"
        self._who, self._next = who, now + self._pause_s
        self._log(text)
