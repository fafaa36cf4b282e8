"""Files that CONTRIBUTING, the READMEs and the site name exist, and the step tables of CONTRIBUTING are right."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import PROJECT
from docs.documents import prose, text

LIBRARY = PROJECT / "scripts/loadstone"
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_NAMED_FILE = re.compile(r"<code>([\w./-]+\.(?:py|sql))</code>")
_SUFFIXES = {".py", ".sql", ".smk", ".md", ".yaml", ".js", ".json", ".toml", ".html", ".css"}
# In the user's own archive and site.
_ELSEWHERE = ("results/", "reports/", "metadata.json", "completion_time.txt", "old/")
_STEP = re.compile(r"^\| \d+ \| `([^`]+)` \|.*\| `([^`]+)` \|$", re.MULTILINE)


def _found(name: str) -> Path | None:
    """A path from the checkout's root, or from the library's."""
    return next((root / name for root in (PROJECT, LIBRARY) if (root / name).exists()), None)


@cache
def _code_files() -> frozenset[str]:
    """The Python and SQL files of the library and its tests, from the checkout's root."""
    folders = (LIBRARY, PROJECT / "tests")
    return frozenset(
        file.relative_to(PROJECT).as_posix()
        for folder in folders
        for suffix in ("py", "sql")
        for file in folder.rglob(f"*.{suffix}")
    )


def _named_in_templates() -> set[str]:
    """The Python and SQL files that templates of pages name within ``<code>``."""
    templates = (LIBRARY / "report/templates").rglob("*.html")
    return {name for template in templates for name in _NAMED_FILE.findall(template.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "README.md", "config/README.md", "tests/README.md"])
def test_files_exist(document: str) -> None:
    folder = (PROJECT / document).parent
    for quoted in re.findall(r"`([^`\n]+)`", prose(PROJECT / document)):
        name = quoted.partition("::")[0]
        if not _PATH.fullmatch(name) or name.startswith(_ELSEWHERE):
            continue
        if Path(name).suffix in _SUFFIXES or name.endswith("/"):
            assert _found(name) or (folder / name).exists(), f"{document} names {name}"


@pytest.mark.parametrize("name", sorted(_named_in_templates()))
def test_files_named_on_pages_exist(name: str) -> None:
    """A page names a file by its path, or by the end of it."""
    assert any(f"/{file}".endswith(f"/{name}") for file in _code_files()), f"templates name {name}"


def section(title: str) -> str:
    """The text below a heading of CONTRIBUTING."""
    return text(PROJECT / "CONTRIBUTING.md").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def steps(title: str) -> list[tuple[Path, str]]:
    """Each step's file, and the word to search for, which leads to the next step."""
    return [(_found(file) or LIBRARY / file, word) for file, word in _STEP.findall(section(title))]


@pytest.mark.parametrize("title", ["Where does p99 come from?", "Where does a run come from?"])
def test_five_steps_can_be_followed(title: str) -> None:
    """The word of a step is in its file, and in the next file or in that file's name."""
    table = steps(title)
    assert len(table) == 5
    for (file, word), (following, _) in pairwise(table):
        assert word in file.read_text(encoding="utf-8"), f"{file.name} does not contain {word}"
        assert word in following.read_text(encoding="utf-8") or word in following.name, f"{following.name}: {word}"
    last, word = table[-1]
    assert word in last.read_text(encoding="utf-8")


def test_lists_of_files_to_change_are_short() -> None:
    rows = re.findall(r"^\| (a [^|]+) \|([^|]+)\|$", section("What to change"), re.MULTILINE)
    assert len(rows) == 7
    for what, files in rows:
        assert 1 <= len(re.findall(r"`[^`]*[/.][^`]*`", files)) <= 4, what
