"""What the tests of imports share."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from loadstone.errors import LoadstoneError
from loadstone.importing import copying, plan
from support import foreign, rawfiles


class Imports:
    """A project's folder, which is the working one, with files in ``old`` and a declaration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self.log: list[str] = []
        (folder / "config").mkdir()
        (folder / "old").mkdir()

    def write(self, name: str, content: str | bytes = foreign.VEGETA) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def declare(self, *entries: dict) -> None:
        (self.folder / "config/imports.yaml").write_text(yaml.safe_dump(list(entries)))

    def plan(self) -> plan.Plan:
        return plan.make(self.archive)

    def run(self) -> None:
        self.log = []
        copying.carry_out(self.plan(), self.log.append)

    def refused(self) -> list[str]:
        """Every line of the refusal; nothing was touched."""
        before = self.contents()
        with pytest.raises(LoadstoneError) as error:
            self.run()
        assert self.contents() == before, "something was written before all was checked"
        first, *lines = str(error.value).splitlines()
        assert first == "nothing was imported:"
        return [line.strip() for line in lines]

    def contents(self) -> dict[str, bytes]:
        """Every file of the archive, hidden ones too."""
        return {
            file.relative_to(self.archive).as_posix(): b"a link" if file.is_symlink() else file.read_bytes()
            for file in sorted(self.archive.rglob("*"))
            if file.is_file() or file.is_symlink()
        }


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imports:
    """An empty project with nothing in its archive."""
    monkeypatch.chdir(tmp_path)
    return Imports(tmp_path)


@pytest.fixture
def entry() -> Callable[..., dict]:
    """An entry for ``old/*.txt``, changed by its arguments; None leaves a key out."""

    def made(**changes: object) -> dict:
        found = {
            "files": "old/*.txt",
            "app": "shop",
            "host": "lab",
            "timestamp": "2020-08-24T15:46:00+01:00",
            "variant": "plain",
            "rate": 100,
        } | changes
        return {key: value for key, value in found.items() if value is not None}

    return made


@pytest.fixture(scope="session")
def attack() -> rawfiles.Attack:
    """One real attack by vegeta."""
    return rawfiles.attack()
