"""Targets that already run: commands that prepare and clean up, hosts that may be attacked, resources of Prometheus."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from loadstone.archive.locks import PREPARED_LOCK, exclusive
from loadstone.collect.targets.base import RunFailedError
from loadstone.collect.targets.external.keeper import Prepared
from loadstone.collect.targets.identity import identify
from loadstone.collect.targets.session import KEEPER_LOCK
from loadstone.config import check
from loadstone.config.connection import Connection, is_allowed
from loadstone.errors import LoadstoneError
from support.checkout import Checkout
from support.outside import Outside, assert_cleaned_up
from support.standin import Answer, StandIn


@pytest.fixture
def checkout(pristine: Path, tmp_path: Path, outside: Outside) -> Checkout:
    found = Checkout(pristine, tmp_path / "checkout")
    outside.configure(found)
    return found


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state/loadstone").glob("*.json"))


@pytest.mark.parametrize("order", ["blocks", "grouped"])
def test_each_variant_is_prepared_for_its_runs_and_cleaned_up(
    checkout: Checkout, outside: Outside, tmp_path: Path, order: str
) -> None:
    outside.configure(checkout, sweep={"order": order, "rates": [20, 40], "seed": 5})
    checkout.run("--cores", "1", "open")
    output = checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 8
    assert_cleaned_up(outside.notes())
    switches = len(outside.notes()) // 2
    assert switches <= 4 if order == "grouped" else switches >= 4
    assert left(tmp_path) == []
    assert "preparing plain: sh -c" in output and "cleaning up plain: sh -c" in output
    planned = json.loads((checkout.results()[0].parent / "metadata.json").read_text())
    assert planned["order"]["kind"] == order
    assert planned["target"]["prepare"] == [outside.command("prepare")]
    outside.file.unlink()
    checkout.run("--cores", "all", "attacks")  # nothing is missing, nothing is prepared
    assert outside.notes() == []


def test_a_variant_that_can_not_be_prepared_is_cleaned_up_and_its_runs_fail(
    checkout: Checkout, outside: Outside, tmp_path: Path
) -> None:
    target = checkout.declared()["target"]
    target["variants"]["plain"]["prepare"] = [outside.command("prepare", then="; echo no licence; exit 3")]
    checkout.replace(target=target)
    checkout.configure(sweep={"retries": 0})
    checkout.run("--cores", "1", "open")
    output = checkout.run("--cores", "all", "attacks", expect=1)
    assert "the variant can't be prepared: sh ended with exit code 3:\nno licence" in output
    assert len(checkout.results()) == 2
    assert_cleaned_up(outside.notes())
    assert left(tmp_path) == []


def test_a_sweep_goes_on_when_nobody_reads_its_output_any_more(
    checkout: Checkout, outside: Outside, tmp_path: Path
) -> None:
    target = checkout.declared()["target"]
    target["variants"]["plain"]["prepare"] = [outside.command("prepare", then="; exit 3")]
    checkout.replace(target=target)
    checkout.configure(sweep={"retries": 0})
    checkout.run("--cores", "1", "open")
    process = checkout.start("--cores", "1", "attacks")
    assert process.stdout is not None
    while "preparing" not in process.stdout.readline():
        assert process.poll() is None
    process.stdout.close()
    try:
        assert process.wait(60) == 1  # for the runs that can't be prepared
    finally:
        process.kill()
    assert len(checkout.results()) == 2
    assert_cleaned_up(outside.notes())
    assert left(tmp_path) == []


def test_a_cleanup_that_fails_is_reported_and_tried_again_by_restore(
    checkout: Checkout, outside: Outside, tmp_path: Path, pristine: Path
) -> None:
    target = checkout.declared()["target"]
    broken = tmp_path / "broken"
    broken.touch()
    target["variants"]["plain"]["cleanup"] = [
        outside.command("first"),
        outside.command("cleanup", then=f"; test ! -e {broken}"),
    ]
    checkout.replace(target=target)
    checkout.run("--cores", "1", "open")
    output = checkout.run("--cores", "all", "attacks", expect=1)
    assert "the target needs your attention: it is not as it was" in output
    assert len(left(tmp_path)) == 1
    before = len(outside.notes())
    again = checkout.run("--cores", "1", "restore", expect=1)
    assert "sh ended with exit code 1" in again
    assert outside.notes()[before:] == ["cleanup plain"]  # the first command had succeeded
    broken.unlink()
    other = Checkout(pristine, tmp_path / "other")
    said = other.run("--cores", "1", "restore")
    assert "cleaning up after the variant plain" in said
    assert outside.notes()[before:] == ["cleanup plain"] * 2
    assert left(tmp_path) == []


def test_a_command_that_does_not_end_is_stopped_and_has_failed(
    checkout: Checkout, outside: Outside, tmp_path: Path
) -> None:
    target = checkout.declared()["target"] | {"command_timeout": "1s"}
    target["variants"]["plain"]["prepare"] = [outside.command("prepare", then="; sleep 600")]
    target["variants"]["plain"]["cleanup"] = [outside.command("cleanup", then="; sleep 600")]
    checkout.replace(target=target)
    checkout.configure(sweep={"retries": 0})
    checkout.run("--cores", "1", "open")
    output = checkout.run("--cores", "all", "attacks", expect=1)
    assert "sh took longer than 1 s (target.command_timeout); its output is in logs/target/plain." in output
    assert "the target needs your attention: it is not as it was" in output
    assert len(left(tmp_path)) == 1
    assert "took longer than 1 s" in checkout.run("--cores", "1", "restore", expect=1)


def test_a_target_without_commands_is_not_measured_while_another_is_prepared(checkout: Checkout) -> None:
    without_commands(checkout)
    checkout.run("--cores", "1", "open")
    with exclusive("another sweep", print, PREPARED_LOCK):
        process = checkout.start("--cores", "all", "attacks")
        log = checkout.path / "logs"
        deadline = time.monotonic() + 60
        while not any("another sweep" in path.read_text() for path in log.rglob("*.log")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        assert checkout.results() == []
        with exclusive("a run of that sweep", print, limit_s=30.0):  # which a run that waits does not hold up
            pass
    assert process.wait() == 0
    assert len(checkout.results()) == 4


def without_commands(checkout: Checkout) -> None:
    variants = checkout.declared()["target"]["variants"]
    for variant in variants.values():
        variant.pop("prepare", None), variant.pop("cleanup", None)
    checkout.replace(target=checkout.declared()["target"] | {"variants": variants})


def test_sweeps_with_and_without_commands_take_turns(checkout: Checkout, outside: Outside, pristine: Path) -> None:
    other = Checkout(pristine, checkout.path.parent / "other")
    outside.configure(other)
    without_commands(other)
    both = (checkout, other)
    for each in both:
        each.run("--cores", "1", "open")
    processes = [each.start("--cores", "all", "attacks") for each in both]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    assert [len(each.results()) for each in both] == [4, 4]
    assert_cleaned_up(outside.notes())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_while_it_prepares_cleans_up(
    checkout: Checkout, outside: Outside, tmp_path: Path, number: int
) -> None:
    outside.configure(checkout, takes_s=1.0)
    checkout.run("--cores", "1", "open")
    process = checkout.start("--cores", "all", "attacks")
    deadline = time.monotonic() + 60
    while not outside.notes():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.communicate()
    checkout.wait_idle()
    assert_cleaned_up(outside.notes())
    assert left(tmp_path) == []


def test_only_listed_hosts_and_this_machine_are_attacked() -> None:
    def declared(url: str, **target: object) -> None:
        variant = {"url": url, "expect": {"status": 200, "body_contains": "x"}}
        sweep = {"app": "a", "variants": ["v"], "rates": [1], "runs": 1, "duration": "1s"}
        folders = {"archive": "a", "tables": "t", "reports": "r"}
        check(folders | {"sweep": sweep, "target": {"kind": "external", "variants": {"v": variant}, **target}})

    for url in ("http://127.0.0.1:1/", "http://localhost/", "https://[::1]:2/", "http://127.8.8.8/"):
        declared(url)
    declared("https://shop.example.org/", allow=["Shop.example.org"])
    for url, host in [("http://10.0.0.7/", "10.0.0.7"), ("https://a.shop.example.org/", "a.shop.example.org")]:
        with pytest.raises(LoadstoneError, match=rf"variants\.v\.url: {host} is not in target.allow") as error:
            declared(url, allow=["shop.example.org"])
        assert f"allow: [shop.example.org, {host}]" in str(error.value)


def test_what_an_earlier_command_left_is_cleaned_up_though_nothing_is_missing(
    checkout: Checkout, outside: Outside, tmp_path: Path
) -> None:
    outside.configure(checkout, sweep={"runs": 1})
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks")
    before = len(outside.notes())
    # As after a power loss: its keeper is gone, and the first of two commands had succeeded.
    commands = tuple(tuple(outside.command(word)) for word in ("first", "cleanup"))
    folder = str(checkout.path.resolve())
    Prepared("an-id", folder, "plain", "2026-01-01T00:00:00+00:00", commands, done=1).write()
    output = checkout.run("--cores", "all", "attacks")
    assert "cleaning up after the variant plain (prepared 2026-01-01T00:00:00+00:00 in " in output
    assert outside.notes()[before:] == ["cleanup plain"] and left(tmp_path) == []
    checkout.run("--cores", "1", "restore")


def test_a_record_that_is_broken_is_named_and_kept(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run("--cores", "1", "open")
    record = tmp_path / "state/loadstone/x.prepared.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    assert "x.prepared.json, the record of what has to be cleaned up, can't be read" in checkout.run(
        "--cores", "1", "restore", expect=1
    )
    assert record.exists()


def test_a_checkout_that_is_gone_is_cleaned_up_by_hand(checkout: Checkout, tmp_path: Path) -> None:
    record = Prepared("gone", str(tmp_path / "gone"), "plain", "2026-11-25T10:00:00+00:00", (("true",),))
    record.write()
    said = checkout.run("--cores", "1", "restore", expect=1)
    assert f"its folder is gone; clean up by hand, then delete {record.path}" in said


def test_nothing_is_restored_while_another_sweep_measures(checkout: Checkout, outside: Outside) -> None:
    command = tuple(outside.command("cleanup"))
    record = Prepared("left", str(checkout.path), "plain", "2026-11-25T10:00:00+00:00", (command,))
    record.write()
    with exclusive("another sweep", print, PREPARED_LOCK):
        process = checkout.start("--cores", "1", "restore")
        assert process.stdout is not None
        while "another sweep" not in process.stdout.readline():
            assert process.poll() is None
        assert outside.notes() == []
    process.communicate(timeout=60)
    assert process.returncode == 0 and outside.notes() == ["cleanup plain"]


def test_what_a_sweep_under_way_has_prepared_is_left_alone(
    checkout: Checkout, outside: Outside, tmp_path: Path
) -> None:
    command = tuple(outside.command("cleanup"))
    other = tmp_path / "other"
    (other / KEEPER_LOCK).parent.mkdir(parents=True)
    Prepared("used", str(other), "plain", "2026-11-25T10:00:00+00:00", (command,)).write()
    with exclusive("a sweep", print, other / KEEPER_LOCK):
        assert "is used by a sweep that is still running" in checkout.run("--cores", "1", "restore")
    assert outside.notes() == [] and len(left(tmp_path)) == 1


def test_commands_have_the_users_own_environment(checkout: Checkout, outside: Outside, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/my/own/modules")
    outside.configure(checkout)
    target = checkout.declared()["target"]
    for variant in target["variants"].values():
        variant["prepare"] = [["sh", "-c", f'echo "$PYTHONPATH" >> {outside.file}']]
        variant.pop("cleanup")
    checkout.replace(target=target)
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks")
    assert set(outside.notes()) == {"/my/own/modules"}


def test_a_relative_program_is_that_of_the_checkout_that_prepared(
    checkout: Checkout, outside: Outside, tmp_path: Path, pristine: Path
) -> None:
    script = checkout.path / "undo.sh"
    script.write_text(f"#!/bin/sh\necho cleanup plain >> {outside.file}\n")
    script.chmod(0o755)
    Prepared("an-id", str(checkout.path.resolve()), "plain", "2026-01-01T00:00:00+00:00", (("./undo.sh",),)).write()
    other = Checkout(pristine, tmp_path / "other")
    other.run("--cores", "1", "restore")
    assert outside.notes() == ["cleanup plain"] and left(tmp_path) == []


def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path) -> None:
    stranger = StandIn(tmp_path / "stranger", lambda *_: (200, {}, "the page"))
    address = f"http://stranger.test:{stranger.port}/"
    own = StandIn(tmp_path / "own", lambda *_: (302, {"Location": address}, ""))
    declared = {"method": "POST", "url": f"http://127.0.0.1:{own.port}/", "header": {}, "body": "x"}
    with pytest.raises(RunFailedError, match=r"it redirects to stranger\.test, which is not in target\.allow"):
        identify(declared, {"status": 200}, 2.0, Connection(), allowed=lambda host: is_allowed(host, ()))
    for each in (own, stranger):
        each.close()


def test_a_redirect_is_followed_as_go_does(tmp_path: Path) -> None:
    def answer(method: str, path: str, headers: dict[str, str]) -> Answer:
        if path == "/" and method == "POST":
            return 303, {"Location": "/naïve".encode().decode("latin-1")}, ""
        return (200, {}, "the page") if method == "GET" and "authorization" in headers else (400, {}, "")

    server = StandIn(tmp_path / "server", answer)
    declared = {"method": "POST", "url": f"http://127.0.0.1:{server.port}/", "header": {"Authorization": ["x"]}}
    declared["body"] = "x"
    assert identify(declared, {"status": 200, "body_contains": "the page"}, 2.0, Connection())["status"] == 200
    server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("killed", [False, True])
def test_what_a_preparation_leaves_running_ends_after_the_cleanup(
    checkout: Checkout, outside: Outside, tmp_path: Path, killed: bool
) -> None:
    """A server in a session of its own, as `ssh -f` and many servers are: it is needed until then."""
    target = checkout.declared()["target"]
    pids, ready = tmp_path / "pids", tmp_path / "ready"
    # Until it has a session of its own it ends with the command, so the command waits for it.
    daemon = f"; rm -f {ready}; setsid sh -c 'echo $$ >> {pids}; > {ready}; exec sleep 1000' &"
    daemon += f" until test -e {ready}; do sleep 0.1; done"
    is_up = f"; kill -0 $(tail -1 {pids}) && echo up >> {pids}.up"
    for variant in target["variants"].values():
        variant["prepare"] = [outside.command("prepare", then=daemon)]
        variant["cleanup"] = [outside.command("cleanup", then=is_up)]
    checkout.replace(target=target)
    checkout.run("--cores", "1", "open")
    process = checkout.start("--cores", "all", "attacks")
    if killed:
        while process.poll() is None and not checkout.results():
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    output, _ = process.communicate(timeout=600)
    checkout.wait_idle(30)
    found = [int(pid) for pid in pids.read_text().split()]
    assert found and not any(map(psutil.pid_exists, found))
    assert len(Path(f"{pids}.up").read_text().split()) == len(found)
    log = (checkout.path / "logs/target.log").read_text()
    for pid in found:
        text = rf"ended what commands of (plain|envoy) had left running: sleep \(process {pid}\)"
        assert re.search(text, log) and (killed or re.search(text, output))
    assert_cleaned_up(outside.notes())


def test_a_second_ctrl_c_shows_no_traceback_and_the_target_is_cleaned_up_all_the_same(
    checkout: Checkout, outside: Outside
) -> None:
    outside.configure(checkout, takes_s=3)
    checkout.run("--cores", "1", "open")
    process = checkout.start("--cores", "all", "attacks")
    while process.poll() is None and not checkout.results():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    while process.poll() is None and not outside.notes()[-1].startswith("cleanup"):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=600)
    checkout.wait_idle(30)
    assert "Interrupted again, so this command does not wait." in output
    assert "run it again: snakemake --cores all attacks" in output and "Traceback" not in output, output
    assert_cleaned_up(outside.notes())
