"""What keeper and jobs of one command tell each other and their user."""

from pathlib import Path

import pytest
from loadstone.collect.targets import session


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADSTONE_SESSION", "one")


def test_a_thing_is_said_once_per_session(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [session.is_new(text) for text in ("a", "b", "a", "b")] == [True, True, False, False]
    monkeypatch.setenv("LOADSTONE_SESSION", "two")
    assert [session.is_new(text) for text in ("a", "a")] == [True, False]
    Path("results/.cluster/.logged").write_bytes(b"\xff\n")
    assert session.is_new("a")


def test_the_cluster_is_needed_until_the_tries_of_every_campaign_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("results/.cluster").mkdir(parents=True)
    campaigns = ["shop/here/1", "shop/here/2"]
    assert not session.is_released("one", campaigns)
    session.campaign_finished(campaigns[1])
    session.campaign_finished(campaigns[1])
    assert not session.is_released("one", campaigns)
    session.campaign_finished(campaigns[0])
    assert session.is_released("one", campaigns) and not session.is_released("two", campaigns)
    monkeypatch.delenv("LOADSTONE_SESSION")
    session.campaign_finished(campaigns[0])  # without a session it is told to nobody
    assert not session.is_released("", campaigns[:1])


def test_alarm_is_raised_only_when_something_is_left() -> None:
    texts = {code: session.outcome_text(code) for code in (0, 3, 4, 5, 6, 1, -9)}
    assert texts[0] == ""
    assert {code for code, text in texts.items() if "needs your attention" in text} == {3, 4}
    assert "nothing of it was changed" in texts[5] and "another sweep" in texts[6]
    assert "failed unexpectedly" in texts[1] and "was killed by SIGKILL" in texts[-9]
    assert all(str(code) not in text for code, text in texts.items())
    Path("results/.cluster").mkdir(parents=True)
    session.record_path("https://cluster:6443").write_text("{}")
    assert "needs your attention: the next sweep, or `snakemake" in session.outcome_text(-9)


def test_what_is_left_on_another_server_is_named_and_no_alarm_of_this_one() -> None:
    here, there = "https://here:6443", "https://there:6443"
    session.write_state(session.State("one", session.WAITING, "", here))
    session.record_path(there).write_text('{"server": "https://there:6443"}')
    assert session.has_records() and session.has_records(there) and not session.has_records(here)
    assert [text.partition(":6443")[0] for text in session.other_records(here)] == [
        "this folder also changed https://there"
    ]
    assert session.other_records(there) == []
    assert "Nothing in the cluster has to be restored" in session.outcome_text(-9)
    session.record_path(here).write_text("half a rec")
    assert "needs your attention" in session.outcome_text(-9)
    assert "this folder also changed here-6443:" in session.other_records(there)[0], "as its name tells"
