"""The words of pages, messages and documents are the field's: none of the project's former own words is left."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What is said instead -> words that nobody outside this project would use for it.
FORMER = {
    "relative to the baseline": r"beside the baseline|beside its baseline",
    "inconclusive": r"can[^\w ]t tell|cannot tell which",
    "excluded": r"runs that count\b|\bleft out\b",
    "saturation point": r"\bcarries up to\b|what it carries",
    "resource usage": r"what it used\b",
    "caveats": r"\bbeware\b|what weakens it|claims that strike",
    "overhead per layer": r"what each layer adds",
    "as reported by the tool": r"as the tools? (?:said|reported it)",
    "annotations": r"what people noted",
    "missing": r"\blacking\b",
    "data table": r"\bin words\b",
    "pooled standard error": r"\blent\b|borrowed (?:error|spread|degrees)",
}
ALLOWED = r"cannot_tell"  # the gate's key is contract


def texts_of_python(path: Path) -> list[str]:
    """String literals of several words that are no docstrings."""
    tree = ast.parse(path.read_text())
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
    }
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [node.value for node in found if id(node) not in documented and " " in node.value]


def texts(path: Path) -> list[str]:
    if path.suffix == ".py":
        return texts_of_python(path)
    return [re.sub(r"{#.*?#}", "", path.read_text(), flags=re.DOTALL)]


def sources() -> list[Path]:
    library = ROOT / "scripts/loadstone"
    suffixes = {".py", ".html", ".js", ".rst", ".yaml"}
    found = [path for path in library.rglob("*") if path.suffix in suffixes and path.is_file()]
    return [
        *found,
        *(ROOT / "docs").glob("*.md"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "config/README.md",
    ]


def former_words(text: str) -> list[str]:
    """Former words in a text, each with what is said instead."""
    rest = re.sub(ALLOWED, "", text)
    hits = ((instead, re.search(pattern, rest, re.IGNORECASE)) for instead, pattern in FORMER.items())
    return [f"{hit[0]!r}: say {instead!r}" for instead, hit in hits if hit]


def test_no_text_has_a_former_word():
    found = [
        f"{path.relative_to(ROOT)}: {what}" for path in sources() for text in texts(path) for what in former_words(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["these runs can't tell", "Three runs were left out.", "median beside the baseline"])
def test_former_words_are_found(text):
    assert former_words(text)


# --- captions --------------------------------------------------------------------------------------------------------

CAPTION = re.compile(r"{% call parts\.figure\(.*?%}(.*?){% endcall %}\s*(?={%|</|\n|$)", re.DOTALL)


def captions(template: str) -> list[str]:
    """The text under the heading of each figure, without what opens by its question mark."""
    closed = re.sub(r"{% call parts\.how\(\) %}.*?{% endcall %}", "", template, flags=re.DOTALL)
    found = []
    for body in CAPTION.findall(closed):
        plain = re.sub(r"<[^>]+>", "", re.sub(r"{{.*?}}", "milliseconds", body))
        found.append(" ".join(plain.split()))
    return found


@pytest.mark.parametrize(
    "path", sorted((ROOT / "scripts/loadstone/report/templates").glob("*.html")), ids=lambda p: p.stem
)
def test_captions_are_short(path):
    for caption in captions(path.read_text()):
        assert len(caption) <= 240, caption
        assert len(re.findall(r"[.!?](?:\s|$)", caption)) <= 2, caption


def test_captions_are_found():
    found = captions((ROOT / "scripts/loadstone/report/templates/campaign.html").read_text())
    assert len(found) >= 6 and any("interval" in caption for caption in found)
