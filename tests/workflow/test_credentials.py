"""What a sweep sends or sets as a credential stands in no file that a command leaves, whether its runs fail or not."""

import os
import signal
import time
from pathlib import Path

import zstandard
from support.checkout import Checkout

SECRET = "open-sesame"
KEPT = "--skip-script-cleanup"  # what Snakemake writes for scripts, which a killed one would leave behind


def test_a_credential_stands_in_no_file_of_the_checkout(pristine: Path, tmp_path: Path) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout", runs=1, retries=0, variants=["plain", "wrong"])
    settings = checkout.path / "config/config.yaml"
    declared = checkout.declared()["target"]
    plain = declared["variants"]["plain"] | {"headers": {"Authorization": f"Bearer {SECRET}"}}
    wrong = plain | {"expect": {"status": 200, "body_contains": "of another server"}}
    for process in declared["processes"].values():
        process["environment"] = {"API_TOKEN": SECRET, "PEER": f"http://ada:{SECRET}@peer/"}
    declared["variants"] |= {"plain": plain, "wrong": wrong}
    checkout.replace(target=declared)
    said = checkout.run("--cores", "1", "open", KEPT)
    said += checkout.run("--cores", "all", "attacks", KEPT, expect=1)
    said += checkout.run("--cores", "all", "tables", KEPT)
    assert len(checkout.results()) == 1 and "is not the expected server" in said and SECRET not in said
    left = files_of(checkout)
    assert any("/.snakemake/metadata/" in str(file) for file in left)
    scripts = {file.name.split(".", 1)[1] for file in left if file.parent.name == "scripts" and file.name[:3] == "tmp"}
    assert scripts >= {"open_sweep.py", "collect.py", "complete.py", "convert.py", "analyse.py", "database.py"}
    assert holding(left, SECRET) == [settings]


def test_a_killed_command_leaves_no_credential_behind(pristine: Path, tmp_path: Path) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout", runs=1, variants=["plain"], duration="20s")
    settings = checkout.path / "config/config.yaml"
    declared = checkout.declared()["target"]
    declared["variants"]["plain"]["headers"] = {"Authorization": f"Bearer {SECRET}"}
    for process in declared["processes"].values():
        process["environment"] = {"API_TOKEN": SECRET}
    checkout.replace(target=declared)
    checkout.run("--cores", "1", "open")
    process = checkout.start("--cores", "all", "attacks")
    while process.poll() is None and not any("paced" in line[0] for line in checkout.command_lines() if line):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.wait_idle()
    left = files_of(checkout)
    assert [file for file in left if file.match(".snakemake/scripts/tmp*.collect.py")]
    assert holding(left, SECRET) == [settings]


def files_of(checkout: Checkout) -> list[Path]:
    return [Path(folder, name) for folder, _, names in os.walk(checkout.path) for name in names]


def holding(files: list[Path], secret: str) -> list[Path]:
    """The files that hold a text, compressed or not."""
    contents = {file: file.read_bytes() for file in files if file.is_file()}
    contents |= {file: zstandard.open(file).read() for file in files if file.suffix == ".zst"}
    return [file for file, content in contents.items() if secret.encode() in content]
