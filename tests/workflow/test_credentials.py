"""What a sweep sends or sets as a credential stands in no file that a command leaves, whether its runs fail or not."""

import os
from pathlib import Path

import zstandard
from support.checkout import Checkout

SECRET = "open-sesame"


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
    said = checkout.run("--cores", "1", "open")
    said += checkout.run("--cores", "all", "attacks", expect=1)
    assert len(checkout.results()) == 1 and "is not the expected server" in said and SECRET not in said
    left = [Path(folder, name) for folder, _, names in os.walk(checkout.path) for name in names]
    assert any("/.snakemake/metadata/" in str(file) for file in left)
    contents = {file: file.read_bytes() for file in left if file != settings}
    contents |= {file: zstandard.open(file).read() for file in left if file.suffix == ".zst"}
    assert [file for file, content in contents.items() if SECRET.encode() in content] == []
