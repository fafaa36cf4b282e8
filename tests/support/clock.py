"""A wall clock that jumps, for the Python processes that a test starts."""

from pathlib import Path

# Read by every Python process as it starts: from then on its wall clock goes as the file at CLOCK says, in seconds.
_JUMPING = """
import os, threading, time, time_machine
real, said, stamp = time.time, 0.0, os.utime
def touch(file, times=None, **more):  # the kernel's clock stays
    stamp(file, times if times or more.get("ns") else (time.time(), time.time()), **more)
os.utime = touch
def watch():
    global said
    while True:
        asked = float(open(os.environ["CLOCK"]).read() or said)
        if asked != said:
            said = asked
            time_machine.travel(real() + asked, tick=True).start()
        time.sleep(0.02)
threading.Thread(target=watch, daemon=True).start()
"""


class Clock:
    """That of the processes started with `environment`; right at first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._file = folder / "clock"
        (folder / "sitecustomize.py").write_text(_JUMPING)
        self.environment = {"CLOCK": str(self._file), "PYTHONPATH": str(folder)}
        self.jump(0)

    def jump(self, seconds: float) -> None:
        """To so many seconds after the right time."""
        self._file.write_text(str(seconds))
