"""Configuration, catalogue and all else that people declare, edited anywhere: checked, or refused in words."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fuzz.fuzzing import fuzz
from loadstone import config
from loadstone.config import comparisons
from loadstone.config.catalogue import load_catalogue
from loadstone.config.yaml_files import read_yaml
from loadstone.errors import LoadstoneError
from loadstone.importing import declaration as imports

PROJECT = Path(__file__).resolve().parents[2]


def configuration(path: Path) -> None:
    content = read_yaml(path)
    if isinstance(content, dict):  # Snakemake reads it itself, and refuses all else
        config.check(content)


# Who reads a file, and which of the project's are samples of it.
READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "config.yaml": (configuration, "config/config.yaml"),
    "catalogue.yaml": (load_catalogue, "config/catalogue.yaml"),
    "comparisons.yaml": (comparisons.load, "config/**/comparisons.yaml"),
    "variants.yaml": (config.load_variants, "config/**/variants.yaml"),
    "imports.yaml": (imports.load_entries, "config/**/imports.yaml"),
}


def samples(pattern: str) -> Iterator[bytes]:
    """Whole files, but for long lists, of which the first pages do."""
    for path in sorted(PROJECT.glob(pattern)):
        yield path.read_bytes()[:6000]


@pytest.mark.parametrize("name", READERS)
def test_whatever_is_declared_is_checked_or_refused(tmp_path: Path, name: str) -> None:
    reader, pattern = READERS[name]
    path = tmp_path / name

    def read(content: bytes) -> None:
        path.write_bytes(content)
        with suppress(LoadstoneError):
            reader(path)

    fuzz(name, list(samples(pattern)), read)


@pytest.mark.parametrize("name", READERS)
def test_yaml_makes_no_objects(tmp_path: Path, name: str) -> None:
    made = tmp_path / "made"
    (tmp_path / name).write_text(f"a: !!python/object/apply:os.mkdir [{made}]\n")
    with pytest.raises(LoadstoneError, match="is not valid YAML"):
        READERS[name][0](tmp_path / name)
    assert not made.exists()


def doubled(first: str, times: int, again: str) -> str:
    """Lines each of which names what stands in the line before ten times."""
    lines = [f"a0: &a0 {first}"]
    for number in range(1, times + 1):
        before = [f"*a{number - 1}"] * 10
        lines.append(f"a{number}: &a{number} {again.format(*before)}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (doubled("[x]", 9, "[" + ", ".join(["{}"] * 10) + "]"), "repeat more than"),
        (doubled("{k: x}", 9, "{{" + ", ".join(f"k{place}: {{}}" for place in range(10)) + "}}"), "repeat more than"),
        (doubled("{k: x}", 30, "{{<<: [{}, {}], k: y}}"), "repeat more than"),
        ("shop: &a {plain: *a}\n", "a is part of itself"),
        (f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n", "repeat more than"),
        ("[" * 100_000, "nested more than 100 times"),
        ("a: " + "{a: " * 5000 + "1" + "}" * 5000, "nested more than 100 times"),
    ],
    ids=["lists", "mappings", "merged", "circle", "long", "open", "deep"],
)
def test_a_few_lines_do_not_stand_for_more_than_memory_holds(tmp_path: Path, written: str, words: str) -> None:
    """A child process tries it, with little memory and time: without the look beforehand, some of these kill Python."""
    path = tmp_path / "some.yaml"
    path.write_text(written)
    script = (
        "import resource, sys; from pathlib import Path; from loadstone import config;"
        "resource.setrlimit(resource.RLIMIT_CPU, (10, 10)); resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "config.load_variants(Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert f"LoadstoneError: {path} is not valid YAML" in done.stderr and words in done.stderr, done.returncode
    for reader, _ in READERS.values():
        with pytest.raises(LoadstoneError, match=words):
            reader(path)
