"""Killed, or cut off, at any moment: what is there is whole, on both sides, and the next command goes on."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROJECT
from loadstone.publish.bucket.names import archive_path
from loadstone.publish.bucket.transfer import pull, push
from support.buckets import Bucket, contents, pulled, pushed, refused, write_tables
from support.relay import Asked, Relay, relayed

WORKER = """
import json, sys
from pathlib import Path
from loadstone.publish.bucket import transfer
name, root, declared = sys.argv[1:]
getattr(transfer, name)(Path(root), Path(root).parent / "tables", json.loads(declared), lambda text: None)
"""
KILLS = 4


def killed(name: str, root: Path, bucket: Bucket, relay: Relay, at: int) -> bool:
    """Whether a push or pull asked the server so often that it was killed there."""
    declared = json.dumps(bucket.declared(endpoint=relay.endpoint))
    command = [sys.executable, "-c", WORKER, name, str(root), declared]
    relay.forget()
    process: list[subprocess.Popen[bytes]] = []

    def kill(_: Asked) -> bool:
        if len(relay.asked) >= at:
            process[0].kill()
        return len(relay.asked) < at

    relay.at = kill
    process.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(PROJECT / "scripts")}))
    return process[0].wait() != 0


def requests(work, root: Path, bucket: Bucket) -> int:
    """How many a whole one takes."""
    with relayed(bucket.endpoint) as relay:
        work(root, bucket, endpoint=relay.endpoint)
        return len(relay.asked)


def check_half(here: dict[str, bytes], there: dict[str, bytes]) -> None:
    """All that is there is from here; no plan before all runs of its cell, no mark before all of its campaign."""
    assert there.items() <= here.items()
    for name in there:
        folder, _, last = name.rpartition("/")
        if last in ("metadata.json", "completion_time.txt"):
            runs = {other for other in here if other.startswith(f"{folder}/") and other.endswith(".zst")}
            assert runs <= there.keys(), name


def archived(bucket: Bucket) -> dict[str, bytes]:
    objects = bucket.objects().items()
    return {archive_path(name[8:]): content for name, content in objects if name.startswith("archive/")}


def test_a_push_killed_at_moments_of_chance(archive, bucket, credentials) -> None:
    here = contents(archive)
    write_tables(archive.parent / "tables", "2026", "2027")
    total = requests(pushed, archive, Bucket(credentials, f"{bucket.name}-whole"))
    with relayed(bucket.endpoint) as relay:
        for number in range(KILLS):
            at = random.randint(total * number // KILLS // 2 + 1, total * (number + 1) // KILLS // 2 + 1)
            if not killed("push", archive, bucket, relay, at):
                assert number > 1
            bucket.check_runs()
            check_half(here, archived(bucket))
    pushed(archive, bucket)
    assert archived(bucket) == here == contents(archive)
    assert not [name for name in bucket.objects() if name.startswith("pushing/")]


def test_a_pull_killed_at_moments_of_chance(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    here = contents(archive)
    total = requests(pulled, elsewhere.parent / "whole", bucket)
    with relayed(bucket.endpoint) as relay:
        for number in range(KILLS):
            at = random.randint(total * number // KILLS // 2 + 1, total * (number + 1) // KILLS // 2 + 1)
            if not killed("pull", elsewhere, bucket, relay, at):
                assert number > 1
            found = contents(elsewhere)
            assert found.items() <= here.items()
            campaigns = {tuple(name.split("/")[:3]) for name in found if name.startswith("demo")}
            for campaign in campaigns:  # each is there as a whole or not at all
                mine = {name for name in here if tuple(name.split("/")[:3]) == campaign}
                assert mine <= found.keys()
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == here
    assert not list(elsewhere.rglob(".*"))


@pytest.mark.parametrize("number", [25, 60])
def test_the_server_is_gone_half_way(archive, elsewhere, bucket, number) -> None:
    here = contents(archive)
    with relayed(bucket.endpoint) as relay:
        for work, root in ((push, archive), (pull, elsewhere)):
            relay.forget()
            relay.at = lambda _: len(relay.asked) < number
            said = refused(work, root, bucket, endpoint=relay.endpoint)
            assert "run the same command again" in said and "NETWORK_CONNECTION" in said
            bucket.check_runs()
            check_half(here, archived(bucket))
            assert contents(elsewhere).items() <= here.items()
            relay.forget()
            {"push": pushed, "pull": pulled}[work.__name__](root, bucket, endpoint=relay.endpoint)
    assert contents(elsewhere) == here == contents(archive)


def test_runs_for_a_campaign_that_is_here_arrive_one_by_one(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    gone = [path for path in elsewhere.rglob("*") if path.name.startswith(("1.", "2."))]
    for path in gone:
        path.unlink()
    with relayed(bucket.endpoint) as relay:
        for at in (12, 25):
            assert killed("pull", elsewhere, bucket, relay, at)
            for results in elsewhere.rglob("[12].results.json.zst"):
                if ".pull" not in str(results):
                    assert len(list(results.parent.glob(f"{results.name[0]}.*"))) == 4
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == contents(archive)
    assert not list(elsewhere.rglob(".*"))


def test_two_pushes_race(archive, bucket, tmp_path) -> None:
    """From two folders at once: each is done or is told to wait, and what is there is whole."""
    command = [sys.executable, "-c", WORKER, "push", str(archive), json.dumps(bucket.declared())]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "scripts")}
    racing = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        racing.append(
            subprocess.Popen(command, cwd=tmp_path / name, env=environment, stderr=subprocess.PIPE, text=True)
        )
    for process in racing:
        said = process.communicate()[1]
        assert process.returncode == 0 or "is pushing to the bucket" in said, said
    bucket.check_runs()
    pushed(archive, bucket)
    assert archived(bucket) == contents(archive)
    assert not [name for name in bucket.objects() if name.startswith("pushing/")]
