"""What a log holds of a long wait."""

from loadstone.archive.locks import Waiting


def test_a_night_of_waiting_is_a_few_lines() -> None:
    said: list[tuple[float, str]] = []
    now = 0.0
    waiting = Waiting(lambda text: said.append((now, text)), lambda: now)
    for second in range(8 * 3600):
        now = float(second)
        # One sweep, whose runs come and go; for a while another's.
        who = "other" if 100 <= second < 130 else "sweep"
        waiting.say(who, f"waiting: {who}, run {second // 10}")
    assert [(when, text.partition(" (")[0]) for when, text in said[:5]] == [
        (0, "waiting: sweep, run 0"),
        (60, "waiting: sweep, run 6"),
        (100, "waiting: other, run 10"),
        (130, "waiting: sweep, run 13"),
        (190, "waiting: sweep, run 19"),
    ]
    assert said[1][1].endswith("(for 1 min)")
    assert len(said) < 20
    assert waiting.over() and not waiting.over()
    waiting.say("sweep", "another wait")
    assert said[-1] == (now, "another wait")
