"""Small sites, and the three destinations as a reader and a test sees them."""

import hashlib
import json
import os
import re
import subprocess
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from loadstone.publish.site.destinations import Destination
from loadstone.publish.site.publish import configured_destination
from pyarrow import fs

from support.storage import Storage


def write_site(reports: Path, *, says: str, campaigns: int = 3, rates: int = 4) -> None:
    """A site whose pages and data all say the same word, besides one page and a script that never change."""
    pages = {"index.html": says, "methods.html": "fixed"}
    pages |= {f"campaigns/demo_{number}.html": says for number in range(campaigns)}
    for name, text in pages.items():
        _write(reports / name, f"<p>{text}</p><footer>Made by Loadstone 1.</footer>")
    for number in range(campaigns):
        for rate in range(rates):
            _write(reports / f"campaigns/demo_{number}/{rate}.js", f'loadstone.receive("{rate}",{{}});// {says}\n')
    _write(reports / "assets/vega.js", "fixed" * 10_000)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def files_of(reports: Path) -> dict[str, bytes]:
    return {path.relative_to(reports).as_posix(): path.read_bytes() for path in reports.rglob("*") if path.is_file()}


class FolderReader:
    """What is in a folder; `state` changes with any write there."""

    def __init__(self, root: Path) -> None:
        self.root, self.declared = root / "www", {"to": "folder", "path": str(root / "www")}

    def files(self) -> dict[str, bytes]:
        return {name: content for name, content in files_of(self.root).items() if not name.startswith(".")}

    def put(self, name: str, content: bytes) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(content)

    def state(self) -> Any:
        found = [self.root, *self.root.rglob("*")] if self.root.exists() else []
        return [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in sorted(found)]


class BranchReader:
    """What is in the branch of a bare repository that a checkout calls its origin."""

    prefix = ""

    def __init__(self, root: Path) -> None:
        self.remote, self.checkout = root / "remote.git", root / "checkout"
        git(root, "init", "--quiet", "--bare", self.remote)
        git(root, "init", "--quiet", "--initial-branch=main", self.checkout)
        git(self.checkout, "remote", "add", "origin", self.remote)
        self.declared = {"to": "branch", "repository": self.checkout}

    def files(self) -> dict[str, bytes]:
        if not self.commits():
            return {}
        (commit,) = git(self.remote, "rev-parse", "gh-pages").split()  # which a push that was under way may replace
        names = git(self.remote, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
        return {name: self._blob(commit, name) for name in filter(None, names) if not name.startswith(".")}

    def _blob(self, commit: str, name: str) -> bytes:
        command = ["git", "-C", self.remote, "cat-file", "blob", f"{commit}:{name}"]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def put(self, name: str, content: bytes) -> None:
        other = self.remote.parent / "other"
        if not other.exists():
            git(self.remote.parent, "clone", "--quiet", self.remote, other)
            has = "gh-pages" in git(other, "branch", "--remotes")
            git(other, "checkout", "--quiet", *(["gh-pages"] if has else ["--orphan", "gh-pages"]))
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes(content)
        git(other, "add", name)
        git(other, "commit", "--quiet", "-m", "somebody else's")
        git(other, "push", "--quiet", "origin", "gh-pages")

    def commits(self) -> list[str]:
        return git(self.remote, "for-each-ref").split() and git(self.remote, "rev-list", "gh-pages").split()

    def state(self) -> Any:
        return self.commits()


class BucketReader:
    """What is below a prefix of a bucket."""

    def __init__(self, storage: Storage, bucket: str) -> None:
        (storage.folder / bucket).mkdir()
        self.client, self.root = storage.client(), f"{bucket}/some/site"
        self.declared = {"to": "s3", "bucket": bucket, "prefix": "some/site", "endpoint": storage.endpoint}

    def _infos(self) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        # The server itself works under hidden names.
        found = [info for info in self.client.get_file_info(selector) if info.is_file]
        return [info for info in found if not info.base_name.startswith(".")]

    def files(self) -> dict[str, bytes]:
        found = {}
        for info in self._infos():
            with self.client.open_input_file(info.path) as file:
                found[info.path.removeprefix(f"{self.root}/")] = file.read()
        return found

    def put(self, name: str, content: bytes) -> None:
        with self.client.open_output_stream(f"{self.root}/{name}") as file:
            file.write(content)

    def told(self, name: str) -> dict[str, str]:
        """What a server says of an object."""
        with self.client.open_input_file(f"{self.root}/{name}") as file:
            return {name: value.decode() for name, value in file.metadata().items()}

    def state(self) -> Any:
        return sorted((info.path, info.mtime_ns) for info in self._infos())


Reader = FolderReader | BranchReader | BucketReader


def destination(reader: Reader) -> Destination:
    return configured_destination(reader.declared)


def git(folder: Path, *arguments: object) -> str:
    identity = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(folder), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **identity}
    ).stdout.strip()


def led_to(files: dict[str, bytes], page: str = "index.html") -> str:
    """The publication to which an entry document leads."""
    target = unescape(unquote(re.search(rb'<a href="([^"]*)">This page', files[page])[1].decode()))
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / target).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    name = "/".join(parts)
    assert name in files, name
    assert name.endswith(f"/{page}")
    return name.removesuffix(f"/{page}")


def read_as_reader(files: dict[str, bytes]) -> dict[str, bytes]:
    """The whole site to which the start page leads; fails unless it is as complete as its own list says."""
    folder = led_to(files)
    site = {
        name.removeprefix(f"{folder}/"): content for name, content in files.items() if name.startswith(f"{folder}/")
    }
    listed = json.loads(site.pop("files.json"))
    assert {name: hashlib.sha256(content).hexdigest() for name, content in site.items()} == listed
    for page in listed:
        if page.endswith(".html"):
            led_to(files, page)
    return site
