"""How benchmarks measure, and how what they found is shown."""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of the result. `met` is None where there is no target."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None


Benchmark = Callable[[Path], Iterator[Row]]


@dataclass
class Took:
    """Seconds of clock, and of processor in all programs that ended; the work of others adds only to the first."""

    clock_s: float = 0.0
    cpu_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.clock_s:.1f} s, {self.cpu_s:.1f} s of CPU"


@contextmanager
def timed() -> Iterator[Took]:
    """What the block took, known when it ends."""
    took = Took()
    started, before_s = time.perf_counter(), _programs_s()
    yield took
    took.clock_s, took.cpu_s = time.perf_counter() - started, _programs_s() - before_s


def _programs_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times() counts in hundredths of a second
    return used.ru_utime + used.ru_stime


def best_s(contestants: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """The best time of each; they take turns, the first of which is not counted.

    The best, as in `timeit`: on a shared machine all that lies above it is the work of others, and the longer a step
    takes the more of that it gets, so that medians are unfair to it.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repetitions + 1):
        for name, run in contestants.items():
            started = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - started)
    return {name: min(found) for name, found in times.items()}


def show(benchmarks: Sequence[Benchmark], names: Sequence[str]) -> int:
    """Run the named benchmarks, all without names, each in an empty folder; 1 when a target was missed."""
    known = {benchmark.__name__: benchmark for benchmark in benchmarks}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"there is no benchmark {', '.join(unknown)}; there are: {', '.join(known)}")
    missed = False
    for name in names or known:
        with tempfile.TemporaryDirectory() as folder:
            for row in known[name](Path(folder)):
                verdict = {None: "", True: "met", False: "MISSED"}[row.met]
                print(f"{row.what:<75} {row.measured:<36} {row.target:<18} {verdict}".rstrip(), flush=True)
                missed |= row.met is False
    return int(missed)
