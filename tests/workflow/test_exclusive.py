"""One attack at a time on the machine, also from two checkouts."""

import json
from itertools import pairwise
from pathlib import Path

from support.checkout import Checkout


def _intervals(checkout: Checkout) -> list[tuple[str, str]]:
    records = [json.loads(file.read_text()) for file in checkout.archive.rglob("*.run.json")]
    return [(record["started"], record["ended"]) for record in records]


def test_two_checkouts_never_attack_at_the_same_time(pristine: Path, tmp_path: Path) -> None:
    first = Checkout(pristine, tmp_path / "first", duration="1s")
    second = Checkout(pristine, tmp_path / "second", duration="1s")
    for checkout in (first, second):
        checkout.run("--cores", "1", "open")
    processes = [checkout.start("--cores", "all", "attacks") for checkout in (first, second)]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    intervals = sorted(_intervals(first) + _intervals(second))
    assert len(intervals) == 8
    for (_, ended), (started, _) in pairwise(intervals):
        assert ended <= started
    waited = [output for output in outputs if "waiting: run " in output]
    assert waited and all("process" in output and str(tmp_path) in output for output in waited)
