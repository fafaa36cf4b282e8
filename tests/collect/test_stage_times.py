"""What is said beforehand of sweeps with stages: how long they take, what of them changed, and in which words."""

from pathlib import Path
from typing import Any

import pytest
from loadstone import config
from loadstone.archive import Campaign, metadata, progress
from loadstone.archive.progress import Journal, duration_text
from loadstone.collect import sweep
from loadstone.collect.targets.kubernetes import plan
from loadstone.errors import LoadstoneError

SHAPE = [
    {"name": "warm-up", "rate": 5, "duration": "60s"},
    {"name": "ramp", "rate": 5, "to": "100%", "duration": "120s"},
    {"name": "sustained", "rate": "100%", "duration": "600s"},
]
USERS = {"generator": "k6", "users": [3, 10], "duration": "40s", "warmup": {"duration": "20s"}}


def declared(folder: Path, **changes: Any) -> dict[str, Any]:
    variant = {"url": "http://127.0.0.1:9/", "expect": {"status": 200, "body_contains": "x"}}
    return {
        "archive": str(folder / "archive"),
        "tables": str(folder / "tables"),
        "reports": str(folder / "reports"),
        "host": "here",
        "sweep": {"app": "app", "variants": ["only"], "runs": 2, **changes},
        "target": {"kind": "local", "variants": {"only": variant}},
    }


def opened(content: dict[str, Any]) -> Campaign:
    return sweep.open_sweep(config.check(content), {}, lambda _: None)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [({"rates": [50, 80], "shape": SHAPE}, 4 * (780 + 1)), (USERS, 4 * (60 + 1))],
)
def test_how_long_it_takes_is_told_before_and_while_it_is_open(tmp_path: Path, changes: Any, seconds: float) -> None:
    content = declared(tmp_path, **changes)
    before = plan._order(config.check(content), [])
    assert f"warm-ups and attacks take about {duration_text(seconds)}," in before[-1]
    campaign = opened(content)
    seen = progress.current_progress(campaign, Journal(tmp_path / "journal"))
    assert seen.left_s() == pytest.approx(seconds)


def test_a_preview_says_what_would_be_opened_and_writes_nothing(tmp_path: Path) -> None:
    content = config.check(declared(tmp_path, rates=[50, 80], shape=SHAPE))
    assert sweep.preview(content) == [
        "app on here: 4 runs of 1 variant at 2 rates, about 52 min",
        "  variants: only",
        "  50, 80 requests/s, 2 runs each",
    ]
    assert not (tmp_path / "archive").exists()
    campaign = sweep.open_checked(content, lambda _: None)
    assert sweep.preview(content) == [
        f"{campaign} is still open with 4 runs missing; `snakemake --cores all` continues it"
    ]


def test_users_are_called_users(tmp_path: Path) -> None:
    said: list[str] = []
    content = declared(tmp_path, **USERS)
    campaign = sweep.open_sweep(config.check(content), {}, said.append)
    assert said[-1].endswith("4 runs of 1 variant at 2 numbers of users, about 4 min")
    assert sorted(folder.name for folder in campaign.path.iterdir()) == ["10", "3"]
    journal = Journal(tmp_path / "journal")
    journal.begin(campaign.root, tmp_path / "reports", {campaign: 4})
    seen = progress.current_progress(campaign, journal)
    cell = seen.cells[0].cell
    seen.start(journal.tried(cell, 1, 1))
    assert "only at 3 users, run 1;" in seen.line()
    lines = plan._order(config.check(content), plan._missing_runs(campaign.root, "here"))
    assert any("only at 10 users, run 2" in line for line in lines)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shape": [SHAPE[0] | {"rate": 6}, *SHAPE[1:]]}, "the load's stages: "),
        ({"generator": "k6"}, "sweep.generator: 'vegeta' became 'k6'"),
        ({"shape": None, "duration": "600s"}, "the measured stage: 'sustained' became nothing"),
    ],
)
def test_what_changed_of_the_load_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    shaped = declared(tmp_path, rates=[50], shape=SHAPE)
    opened(shaped)
    shaped["sweep"] = {key: value for key, value in (shaped["sweep"] | change).items() if value is not None}
    with pytest.raises(LoadstoneError, match="was opened from another declaration") as raised:
        opened(shaped)
    assert said in str(raised.value)


def test_version_4_keys_of_a_sweep_with_stages_hold_what_is_measured(tmp_path: Path) -> None:
    campaign = opened(declared(tmp_path, rates=[50], shape=SHAPE))
    described = metadata.read(campaign.path / "50/only/metadata.json")
    assert (described.rate, described.duration_s, described.warmup_duration_s) == (50, 600, 0)
    assert (described.expected_requests, described.load_s, described.problems) == (30_000, 780, [])


@pytest.mark.parametrize(
    ("draw", "said"),
    [("absent.txt", "can't be read: .*absent.txt: No such file"), ("empty.txt", "holds no value of the header X-User")],
)
def test_values_that_can_not_be_drawn_stop_the_opening(tmp_path: Path, draw: str, said: str) -> None:
    (tmp_path / "empty.txt").write_text(" \n\n")
    content = declared(tmp_path, rates=[50], duration="1s")
    content["target"]["variants"]["only"]["draw"] = {"X-User": {"file": str(tmp_path / draw)}}
    with pytest.raises(LoadstoneError, match=said):
        opened(content)
    content["target"]["variants"]["only"]["headers"] = {"x-user": "a"}
    with pytest.raises(LoadstoneError, match="a value among headers too"):
        opened(content)


def test_a_script_that_is_not_there_stops_the_opening(tmp_path: Path) -> None:
    content = declared(tmp_path, rates=[50], duration="1s", generator="k6", script={"file": str(tmp_path / "no.js")})
    with pytest.raises(LoadstoneError, match=r"the script .*no\.js can't be read: No such file"):
        opened(content)
