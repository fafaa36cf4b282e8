"""A branch of a git repository as destination, such as ``gh-pages``: one commit and one push per publication.

Everything happens in the repository of the checkout, whose settings and credentials for the remote apply, but without
touching what its user works with: no working tree, index or branch changes, only objects and ``refs/loadstone/``.

`git fast-import` writes the commit, not `ghp-import`: that replaces the branch's tree, so that all former publications
would have to be checked out, commits when nothing changed, and moves the user's own branch of that name.
"""

import os
import tempfile
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from loadstone import process
from loadstone.config import redact
from loadstone.errors import LoadstoneError
from loadstone.publish.site.destinations import Write

# What was published last: it keeps the objects here, so that the next publication fetches none.
_PUBLISHED = "refs/loadstone/published"
_NOBODY = "Loadstone <loadstone@localhost>"
_NO_JEKYLL = ".nojekyll"  # else GitHub leaves out what begins with _


class Branch:
    """`remote` is a name or address as git takes it; `prefix` a folder of the branch, which else is ours as a whole."""

    def __init__(self, remote: str, branch: str, prefix: str = "", repository: Path | None = None) -> None:
        self._remote, self._branch, self._prefix = remote, branch, prefix.strip("/")
        self._git = _Git(repository or Path.cwd())

    @property
    def name(self) -> str:
        below = f" ({self._prefix}/)" if self._prefix else ""
        return f"the branch {self._branch} of {redact.text(self._remote)}{below}"

    @contextmanager
    def opened(self, *, dry_run: bool) -> Iterator["_BranchPlace"]:
        if not self._git.succeeds("rev-parse", "--git-dir"):
            raise LoadstoneError(
                f"publishing to a branch needs a git repository, which {Path.cwd()} is not (see `git init`)"
            )
        with tempfile.TemporaryDirectory(prefix="loadstone") as folder:
            if dry_run:
                self._git.keep_objects_in(Path(folder))
            head = self._git.head_of(self._remote, self._branch)
            if head and not self._git.succeeds("cat-file", "-e", f"{head}^{{commit}}"):
                fetched = f"+refs/heads/{self._branch}" + ("" if dry_run else f":{_PUBLISHED}")
                self._git.answer("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self._remote, fetched)
            yield _BranchPlace(self._git, self._remote, self._branch, self._prefix, head)


class _Git:
    def __init__(self, repository: Path) -> None:
        self._command = ["git", "-C", str(repository)]
        # Nobody is there to be asked.
        self._environment = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    def keep_objects_in(self, folder: Path) -> None:
        """Write objects there and not into the repository."""
        objects = Path(os.fsdecode(self.answer("rev-parse", "--path-format=absolute", "--git-path", "objects")).strip())
        self._environment |= {
            "GIT_OBJECT_DIRECTORY": str(folder),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }

    def answer(self, *arguments: str, stdin: IO[bytes] | None = None) -> bytes:
        """What git prints. Raises LoadstoneError with its own words, without credentials, when it fails."""
        done = process.ask([*self._command, *arguments], stdin=stdin, environment=self._environment)
        if done.returncode:
            said = redact.text(done.stderr.decode(errors="replace")).strip() or f"exit code {done.returncode}"
            raise LoadstoneError(f"git {arguments[0]}: {said}")
        return done.stdout

    def head_of(self, remote: str, branch: str) -> str | None:
        """The commit of a remote's branch; None where there is no such branch."""
        listed = self.answer("ls-remote", remote, f"refs/heads/{branch}").split()
        return listed[0].decode() if listed else None

    def succeeds(self, *arguments: str) -> bool:
        """Whether it succeeds."""
        return process.ask([*self._command, *arguments], environment=self._environment).returncode == 0


class _BranchPlace:
    def __init__(self, git: _Git, remote: str, branch: str, prefix: str, head: str | None) -> None:
        self._git, self._remote, self._branch, self._head = git, remote, branch, head
        self._prefix = f"{prefix}/" if prefix else ""
        self._written: dict[str, Write] = {}
        self._removed: list[str] = []

    def begin(self) -> None:
        """The remote refuses the push when somebody else was faster."""

    def read(self, name: str) -> bytes | None:
        if name in self._written:
            return self._written[name].read()
        listed = self._listed(name)
        return self._git.answer("cat-file", "blob", listed[0][0]) if listed else None

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: size for _, size, name in self._listed(folder, "-r")}

    def present(self, names: Collection[str]) -> set[str]:
        wanted = set(names)
        return {name for _, _, name in self._listed("", "-r") if name in wanted}

    def is_empty(self) -> bool:
        return all(name.startswith(".") for _, _, name in self._listed("", "-r"))

    def _listed(self, below: str, *options: str) -> list[tuple[str, int, str]]:
        """Object, size and name of each file at or below a name."""
        if self._head is None:
            return []
        where = (self._prefix + below).rstrip("/")
        output = self._git.answer("ls-tree", "-l", "-z", *options, self._head, *([where] if where else []))
        found = []
        for line in filter(None, output.split(b"\0")):
            about, _, path = line.partition(b"\t")
            _, kind, blob, size = about.split()
            if kind == b"blob":
                found.append((blob.decode(), int(size), os.fsdecode(path).removeprefix(self._prefix)))
        return found

    def write(self, files: Sequence[Write]) -> None:
        self._written |= {file.name: file for file in files}

    def remove(self, folders: Sequence[str], files: Sequence[str]) -> None:
        there = {name for _, _, name in self._listed("", "-r")}
        self._removed += [name for name in files if name in there]
        self._removed += [folder for folder in folders if any(name.startswith(f"{folder}/") for name in there)]

    def finish(self, message: str) -> None:
        """One commit of all, and its push: readers see the branch as it was or as it will be."""
        if _NO_JEKYLL not in self.present([_NO_JEKYLL]):
            self.write([Write(_NO_JEKYLL, b"")])
        # A name of its own, for a killed git may leave a lock at its name.
        ref = f"refs/loadstone/{uuid.uuid4().hex}"
        with tempfile.TemporaryFile() as stream:
            self._write_import(stream, ref, message)
            stream.seek(0)
            self._git.answer("fast-import", "--quiet", "--date-format=now", stdin=stream)
        try:
            self._push(ref)
            self._git.succeeds("update-ref", _PUBLISHED, ref)
        finally:
            self._git.succeeds("update-ref", "-d", ref)

    def _push(self, ref: str) -> None:
        try:
            self._git.answer("push", "--quiet", "--no-verify", self._remote, f"{ref}:refs/heads/{self._branch}")
        except LoadstoneError:
            if self._git.head_of(self._remote, self._branch) == self._head:
                raise
            raise LoadstoneError(f"somebody else has just published to the branch {self._branch}; try again") from None

    def _write_import(self, stream: IO[bytes], ref: str, message: str) -> None:
        """What git-fast-import reads. Copies come first: they are of what is there."""
        ident = (
            self._git.answer("var", "GIT_COMMITTER_IDENT") if self._git.succeeds("var", "GIT_COMMITTER_IDENT") else b""
        )
        committer = ident.rpartition(b">")[0] + b">" if b">" in ident else _NOBODY.encode()
        stream.write(b"commit %s\ncommitter %s now\n" % (ref.encode(), committer))
        _data(stream, message.encode())
        if self._head:
            stream.write(b"from %s\n" % self._head.encode())
        for file in self._written.values():
            if file.copy_of is not None:
                stream.write(b"C %s %s\n" % (self._path(file.copy_of), self._path(file.name)))
        for name in self._removed:
            stream.write(b"D %s\n" % self._path(name))
        for file in self._written.values():
            if file.copy_of is None:
                stream.write(b"M 100644 inline %s\n" % self._path(file.name))
                _data(stream, file.read())
        stream.write(b"\n")

    def _path(self, name: str) -> bytes:
        """Quoted as git-fast-import has it."""
        text = (self._prefix + name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return b'"%s"' % os.fsencode(text)


def _data(stream: IO[bytes], content: bytes) -> None:
    stream.write(b"data %d\n" % len(content))
    stream.write(content)
    stream.write(b"\n")
