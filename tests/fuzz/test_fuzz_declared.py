"""Configuration, catalogue and all else that people declare, edited anywhere: checked, or refused in words."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fuzz.fuzzing import fuzz
from loadstone import comparisons, config
from loadstone.catalogue import load_catalogue
from loadstone.errors import LoadstoneError
from loadstone.importing import declared as imports

PROJECT = Path(__file__).resolve().parents[2]


def configuration(path: Path) -> None:
    content = config.read_yaml(path)
    if isinstance(content, dict):  # Snakemake reads it itself, and refuses all else
        config.check(content)


# Who reads a file, and which of the project's are samples of it.
READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "config.yaml": (configuration, "config/config.yaml"),
    "catalogue.yaml": (load_catalogue, "config/catalogue.yaml"),
    "comparisons.yaml": (comparisons.load, "config/**/comparisons.yaml"),
    "variants.yaml": (config.load_variants, "config/**/variants.yaml"),
    "imports.yaml": (imports.load, "config/**/imports.yaml"),
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
