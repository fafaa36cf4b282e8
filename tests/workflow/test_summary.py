"""A command that analyses ends with what the newest complete campaign found, in the terminal."""

import json
import re


def test_a_command_ends_with_verdicts(collected) -> None:
    (collected.path / "reports/index.html").unlink()
    output = collected.run("--cores", "1", "report")
    assert "the summary can't be shown" not in output
    (campaign,) = json.loads((collected.path / "reports/index.json").read_text())["campaigns"]
    assert campaign["headline"] in output
    rows = re.findall(r"│ +50 │ (\w+) +│ +([\d.]+) │", output)
    assert [name for name, _ in rows] == ["Direct", "Envoy"]
    assert re.search(r"│ Direct .*│ baseline +│", output) and "report: reports/index.html" in output


def test_other_commands_have_no_summary(collected) -> None:
    assert "baseline" not in collected.run("--cores", "1", "verify")
