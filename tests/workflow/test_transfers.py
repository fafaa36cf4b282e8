"""A destination that can't be used is refused before anything is made; a dry run shows a preview."""

from pathlib import Path

import pytest
from loadstone.errors import LoadstoneError
from loadstone.workflow import command


def config(root: Path, **sections: object) -> dict[str, object]:
    return {name: str(root / name) for name in ("archive", "tables", "reports")} | sections


@pytest.mark.parametrize(
    ("targets", "refusal"),
    [
        ({"pull", "all"}, "a command of its own"),
        ({"publish"}, "publish is missing in"),
        ({"push"}, "storage"),
        ({"pull"}, "storage"),
    ],
)
def test_what_can_not_be_done_is_refused_before_the_first_job(tmp_path: Path, targets: set[str], refusal: str) -> None:
    with pytest.raises(LoadstoneError, match=refusal):
        command.check_destination(targets, config(tmp_path))


def test_other_commands_need_no_destination(tmp_path: Path) -> None:
    command.check_destination(set(), config(tmp_path))
    command.check_destination({"report", "figures"}, config(tmp_path))


def test_a_preview_names_what_would_be_transferred_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/index.html").write_text("<footer>Made by Loadstone 1.</footer>")
    declared = config(tmp_path, publish={"to": "folder", "path": str(tmp_path / "www")})
    shown: list[str] = []
    command.show_preview("publish", {"publish"}, declared, shown.append, pytest.fail)
    assert shown[0].startswith("Would publish the site as it is now:") and "to transfer (" in shown[0]
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_a_dry_run_of_what_would_be_refused_ends_with_an_error(tmp_path: Path) -> None:
    complaints: list[str] = []
    with pytest.raises(SystemExit) as ended:
        command.show_preview("publish", {"publish"}, config(tmp_path), pytest.fail, complaints.append)
    assert ended.value.code == 1 and "publish is missing in" in complaints[0]
