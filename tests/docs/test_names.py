"""Files that CONTRIBUTING, the READMEs and the site name exist, and the step tables of CONTRIBUTING are right."""

import ast
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


_SQL_FROM, _SQL_MADE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)"), re.compile(r"\b(?:MACRO|TABLE|VIEW)\s+(\w+)")
_SCRIPT = re.compile(r'"\.\./scripts/(\w+)\.py"')


def _without_comments(file: Path) -> str:
    return re.sub(r"--.*|^\s*#.*", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)


def used(file: Path) -> set[str]:
    """The names that a file leads to: what it imports or passes to a call, reads with FROM, or runs as a script."""
    if file.suffix == ".sql":
        return set(_SQL_FROM.findall(_without_comments(file)))
    if file.suffix == ".smk":
        return set(_SCRIPT.findall(_without_comments(file)))
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imported = {name.name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names}
    passed = {each.value for node in nodes if isinstance(node, ast.Call) for each in node.args if _is_text(each)}
    return imported | passed


def provided(file: Path) -> set[str]:
    """The names under which others know a file: its own, and those of what it defines or writes as a table."""
    if file.suffix == ".sql":
        return {file.stem, *_SQL_MADE.findall(_without_comments(file))}
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    tables = {key.value for node in nodes if isinstance(node, ast.Dict) for key in node.keys if _is_text(key)}
    return {file.stem} | defined | tables


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.parametrize(("title", "n_steps"), [("Where does p99 come from?", 6), ("Where does a run come from?", 5)])
def test_steps_can_be_followed(title: str, n_steps: int) -> None:
    """The word of a step is a name that its file uses and the next file provides; the last file itself provides it."""
    table = steps(title)
    assert len(table) == n_steps
    for (file, word), (following, _) in pairwise(table):
        assert word in used(file), f"{file.name} does not use {word}"
        assert word in provided(following), f"{following.name} is not where {word} leads"
    last, word = table[-1]
    assert word in used(last) | provided(last)


def test_the_walk_of_p99_ends_at_the_relation() -> None:
    (*_, (last, word)) = steps("Where does p99 come from?")
    assert (last.name, word) == ("measured_requests.sql", "read_parquet")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", '"""Made by cells."""\n# import cells\nnote = "cells"\n'),
        ("a.sql", "-- FROM cells, CREATE TABLE cells\nSELECT 'cells' FROM runs\n"),
        ("a.smk", '# "../scripts/cells.py"\nrule all:\n    input: "cells"\n'),
    ],
)
def test_a_mention_leads_nowhere(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert "cells" not in used(tmp_path / name)
    assert name.endswith(".smk") or "cells" not in provided(tmp_path / name)


def test_lists_of_files_to_change_are_short() -> None:
    rows = re.findall(r"^\| (a [^|]+) \|([^|]+)\|$", section("What to change"), re.MULTILINE)
    assert len(rows) == 8
    for what, files in rows:
        assert 1 <= len(re.findall(r"`[^`]*[/.][^`]*`", files)) <= 4, what
