"""Files that CONTRIBUTING and the READMEs name exist, and the two walks of CONTRIBUTING can be followed."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import PROJECT
from docs.documents import prose, text

LIBRARY = PROJECT / "scripts/loadstone"
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_SUFFIXES = {".py", ".sql", ".smk", ".md", ".yaml", ".js", ".json", ".toml", ".html", ".css"}
# In the user's own archive and site.
_ELSEWHERE = ("results/", "reports/", "metadata.json", "completion_time.txt", "old/")
_ROOM = re.compile(r"^\| \d+ \| `([^`]+)` \|.*\| `([^`]+)` \|$", re.MULTILINE)


def _found(name: str) -> Path | None:
    """A path from the checkout's root, or from the library's."""
    return next((root / name for root in (PROJECT, LIBRARY) if (root / name).exists()), None)


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "README.md", "config/README.md", "tests/README.md"])
def test_files_exist(document: str) -> None:
    folder = (PROJECT / document).parent
    for quoted in re.findall(r"`([^`\n]+)`", prose(PROJECT / document)):
        name = quoted.partition("::")[0]
        if not _PATH.fullmatch(name) or name.startswith(_ELSEWHERE):
            continue
        if Path(name).suffix in _SUFFIXES or name.endswith("/"):
            assert _found(name) or (folder / name).exists(), f"{document} names {name}"


def section(title: str) -> str:
    """The text below a heading of CONTRIBUTING."""
    return text(PROJECT / "CONTRIBUTING.md").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rooms(title: str) -> list[tuple[Path, str]]:
    """A walk: each room's file, and the word that leads from it to the next one."""
    return [(_found(file) or LIBRARY / file, word) for file, word in _ROOM.findall(section(title))]


@pytest.mark.parametrize("title", ["Where does p99 come from?", "Where does a run come from?"])
def test_a_walk_of_five_rooms_can_be_followed(title: str) -> None:
    """The word that leads on stands in a room and in the next one, or in the name of that one's file."""
    walk = rooms(title)
    assert len(walk) == 5
    for (room, word), (following, _) in pairwise(walk):
        assert word in room.read_text(encoding="utf-8"), f"{room.name} says nothing of {word}"
        assert word in following.read_text(encoding="utf-8") or word in following.name, f"{following.name}: {word}"
    last, word = walk[-1]
    assert word in last.read_text(encoding="utf-8")


def test_lists_of_files_to_touch_are_short() -> None:
    rows = re.findall(r"^\| (a [^|]+) \|([^|]+)\|$", section("What to touch"), re.MULTILINE)
    assert len(rows) == 5
    for what, files in rows:
        assert 1 <= len(re.findall(r"`[^`]*[/.][^`]*`", files)) <= 4, what
