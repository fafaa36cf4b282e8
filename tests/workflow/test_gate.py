"""The gate through the workflow: exit status, what it says, what it leaves, and that it never attacks."""

import json

import numpy as np
import pytest
from loadstone import archive
from support import rawfiles
from support.checkout import Checkout

TIMES = [f"2026-0{month}-01T12:00:00+00:00" for month in range(1, 5)]


def add(checkout: Checkout, timestamp: str, factor: float = 1.0) -> None:
    """A complete campaign whose istio takes `factor` times as long."""
    for variant in ("plain", "istio"):
        random = np.random.default_rng([*timestamp.encode(), *variant.encode()])
        slower = factor if variant == "istio" else 1.0
        files = {
            f"{run}.results.json": rawfiles.lines(1e7 * slower * random.lognormal(0, 0.1, 400)) for run in (1, 2, 3)
        }
        options = {"testOptions": {"rate": "100", "duration": "4s"}}
        cell = rawfiles.write_cell(checkout.archive, files, at=timestamp, variant=variant, **options)
        (cell.campaign.path / archive.COMPLETION).touch()


@pytest.fixture(scope="module")
def checkout(pristine, tmp_path_factory) -> Checkout:
    """Two campaigns that are alike, with an open sweep beside them that nobody asks for."""
    made = Checkout(pristine, tmp_path_factory.mktemp("gate") / "checkout")
    made.replace(gate={"ratio": 1.2})
    add(made, TIMES[0])
    add(made, TIMES[1])
    made.run("--cores", "1", "open")
    return made


def report(checkout: Checkout) -> dict:
    return json.loads((checkout.path / "reports/gate.json").read_text())


def test_no_worse_then_worse_then_a_choice_of_references(checkout) -> None:
    before = checkout.contents()
    output = checkout.run("--cores", "1", "gate")
    assert "gate: no worse. 6 figures against previous: 0 worse, 6 no worse, 0 inconclusive" in output
    assert report(checkout)["outcome"] == "no worse"
    assert checkout.contents() == before  # the open sweep was not collected

    add(checkout, TIMES[2], 1.5)
    before = checkout.contents()
    # A campaign more costs itself, and one look at the cells of all.
    assert checkout.jobs("--cores", "1", "gate") == {
        "analyse": 1,
        "convert": 1,
        "database": 1,
        "gate": 1,
    }
    output = checkout.run("--cores", "1", "gate", expect=1)
    assert "gate: worse." in output and "Traceback" not in output
    assert "worse: demo/here: istio at 100 requests/s, p50: 15" in output
    assert "plain at" not in output
    found = report(checkout)
    assert (found["outcome"], found["fails"]) == ("worse", True)
    assert {each["variant"] for each in found["figures"] if each["verdict"] == "worse"} == {"istio"}
    assert checkout.contents() == before

    checkout.replace(gate={"ratio": 1.2, "candidate": TIMES[0]})
    output = checkout.run("--cores", "1", "gate")
    assert "gate: inconclusive." in output and "that passes here" in output
    assert report(checkout)["outcome"] == "inconclusive"

    checkout.replace(gate={"ratio": 1.2, "candidate": TIMES[0], "cannot_tell": "fail"})
    output = checkout.run("--cores", "1", "gate", expect=1)
    assert "gate: inconclusive." in output and "that fails here" in output
    assert report(checkout)["fails"] is True


def test_wrong_declarations_are_named(checkout, tmp_path) -> None:
    wrong = checkout.copy(tmp_path / "checkout")
    wrong.replace(gate={"reference": "yesterday", "ratio": 0})
    output = wrong.run("--cores", "1", "gate", expect=1)
    assert "gate.reference" in output and "gate.ratio" in output and "Traceback" not in output
    former = wrong.path / "reports/gate.json"
    former.parent.mkdir(exist_ok=True)
    former.write_text('{"outcome": "no worse"}')
    wrong.replace(gate={"reference": "2020-01-01T00:00:00Z"})
    output = wrong.run("--cores", "1", "gate", expect=1)
    assert "the archive has no campaign 2020-01-01T00:00:00Z" in output and "Traceback" not in output
    assert not former.exists(), "nobody may take it for this gate's"


def test_after_a_sweep_the_gate_finds_all_tables_made(collected) -> None:
    """`convert` waited for the sweep's end, of which later commands know only that it was."""
    assert collected.jobs("--cores", "1", "gate") == {"gate": 1}
    assert set(collected.jobs("--cores", "all")) <= {"all"}
