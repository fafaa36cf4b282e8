"""Snakemake is killed at moments of chance: each preparation is followed by its cleanup, exactly once."""

import os
import random
import re
import signal
import time
from pathlib import Path

from support.checkout import Checkout
from support.outside import Outside, assert_cleaned_up

KILLS = int(os.environ.get("LOADSTONE_EXTERNAL_KILLS", "20"))


def test_snakemake_killed_at_moments_of_chance(pristine: Path, tmp_path: Path, outside: Outside) -> None:
    chance = random.Random(19)
    checkout = Checkout(pristine, tmp_path / "checkout")
    outside.configure(checkout, takes_s=0.3, sweep={"runs": 40, "give_up_after": 100})
    checkout.run("--cores", "1", "open")
    killed_while = set()
    for _ in range(KILLS):
        process = checkout.start("--cores", "all", "attacks")
        time.sleep(chance.uniform(1.5, 6.0))
        os.kill(process.pid, signal.SIGKILL)
        killed_while.add(len(outside.notes()) % 2)
        process.communicate()
        checkout.wait_idle(30)
        # A command that was stopped before it noted anything was started all the same.
        log = checkout.path / "logs/target.log"
        lines = log.read_text().splitlines() if log.exists() else []  # killed before its keeper had started
        found = [done for line in lines if (done := re.search(r" (preparing|cleaning up) (plain|envoy): ", line))]
        ran = [f"{'prepare' if done[1] == 'preparing' else 'cleanup'} {done[2]}" for done in found]
        if ran:
            assert_cleaned_up(ran)
        cleanups = [note for note in outside.notes() if note.startswith("cleanup ")]
        assert cleanups == [each for each in ran if each.startswith("cleanup ")]
        assert list((tmp_path / "state/loadstone").glob("*.json")) == []
    assert killed_while == {0, 1} or KILLS < 20  # a few kills on a busy machine may all come before a preparation
