"""A branch of a git repository as destination, such as ``gh-pages``: one commit and one push per publication.

It works in the repository of the checkout, with its settings and its credentials for the remote, and changes neither
working tree nor index nor branches there, only objects and ``refs/loadstone/``.

`git fast-import` writes the commit, not `ghp-import`: that replaces the branch's tree, so that all former publications
would have to be checked out, commits when nothing changed, and moves the user's own branch of that name.
"""

import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from loadstone import process
from loadstone.config import redact
from loadstone.errors import LoadstoneError
from loadstone.publish.site.destinations import Destination, Write

# The last publication: it keeps its objects here, so that the next one fetches none.
_PUBLISHED = "refs/loadstone/published"
_DEFAULT_COMMITTER = b"Loadstone <loadstone@localhost>"
_NO_JEKYLL = ".nojekyll"  # without it GitHub omits files whose names begin with _


class Branch(Destination):
    """`remote` is a name or URL as git takes it; `prefix` a folder of the branch, by default all of it."""

    def __init__(
        self, remote: str = "origin", branch: str = "gh-pages", prefix: str = "", repository: Path | None = None
    ) -> None:
        prefix = prefix.strip("/")
        self.name = f"the branch {branch} of {redact.text(remote)}{f' ({prefix}/)' if prefix else ''}"
        self._remote, self._branch, self._prefix = remote, branch, f"{prefix}/" if prefix else ""
        self._repository = repository or Path.cwd()

    @contextmanager
    def opened(self, *, dry_run: bool) -> Iterator[None]:
        self._environment = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}  # nobody is there to answer a prompt
        if not self._succeeds("rev-parse", "--git-dir"):
            raise LoadstoneError(
                f"publishing to a branch needs a git repository, which {self._repository} is not (see `git init`)"
            )
        with tempfile.TemporaryDirectory(prefix="loadstone") as folder:
            if dry_run:
                objects = self._git("rev-parse", "--path-format=absolute", "--git-path", "objects")
                self._environment["GIT_OBJECT_DIRECTORY"] = folder
                self._environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.fsdecode(objects.strip())
            self._head = self._remote_head()
            if self._head and not self._succeeds("cat-file", "-e", f"{self._head}^{{commit}}"):
                fetched = f"+refs/heads/{self._branch}" + ("" if dry_run else f":{_PUBLISHED}")
                self._git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self._remote, fetched)
            self._files = dict(self._published())
            self._written: dict[str, Write] = {}
            self._removed: list[str] = []
            yield

    def _git(self, *arguments: str, stdin: IO[bytes] | None = None) -> bytes:
        """What git prints. Raises LoadstoneError with git's message, without credentials, when it fails."""
        done = process.ask(["git", "-C", str(self._repository), *arguments], stdin=stdin, environment=self._environment)
        if done.returncode:
            message = redact.text(done.stderr.decode(errors="replace")).strip() or f"exit code {done.returncode}"
            raise LoadstoneError(f"git {arguments[0]}: {message}")
        return done.stdout

    def _succeeds(self, *arguments: str) -> bool:
        try:
            self._git(*arguments)
        except LoadstoneError:
            return False
        return True

    def _remote_head(self) -> str | None:
        """The commit of the remote's branch; None where there is no such branch."""
        listed = self._git("ls-remote", self._remote, f"refs/heads/{self._branch}").split()
        return listed[0].decode() if listed else None

    def _published(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """Each file of the branch below the prefix: name, and object and size."""
        if self._head is None:
            return
        where = [self._prefix] if self._prefix else []
        listed = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", self._head, *where)
        for line in filter(None, listed.split(b"\0")):
            about, _, path = line.partition(b"\t")
            _, kind, blob, size = about.split()
            if kind == b"blob":
                yield os.fsdecode(path).removeprefix(self._prefix), (blob.decode(), int(size))

    def begin(self) -> None:
        """There is no lock; the remote rejects the push if somebody else has pushed first."""

    def read(self, name: str) -> bytes | None:
        if name in self._written:
            return self._written[name].read()
        return self._git("cat-file", "blob", self._files[name][0]) if name in self._files else None

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: size for name, (_, size) in self._files.items() if name.startswith(f"{folder}/")}

    def is_empty(self) -> bool:
        return all(name.startswith(".") for name in self._files)

    def write(self, files: Sequence[Write]) -> None:
        self._written |= {file.name: file for file in files}

    def remove(self, folders: Iterable[str], files: Iterable[str]) -> None:
        self._removed += [name for name in files if name in self._files]
        self._removed += [folder for folder in folders if self.sizes(folder)]

    def finish(self, message: str) -> None:
        """One commit of all, and its push: readers see the branch as it was or as it will be."""
        if _NO_JEKYLL not in self._files:
            self.write([Write(_NO_JEKYLL, b"")])
        # A new name each time, since a killed git may leave a lock of the ref.
        ref = f"refs/loadstone/{uuid.uuid4().hex}"
        with tempfile.TemporaryFile() as stream:
            self._write_import(stream, ref, message)
            stream.seek(0)
            self._git("fast-import", "--quiet", "--date-format=now", stdin=stream)
        try:
            self._push(ref)
            self._succeeds("update-ref", _PUBLISHED, ref)
        finally:
            self._succeeds("update-ref", "-d", ref)

    def _push(self, ref: str) -> None:
        try:
            self._git("push", "--quiet", "--no-verify", self._remote, f"{ref}:refs/heads/{self._branch}")
        except LoadstoneError:
            if self._remote_head() == self._head:
                raise
            raise LoadstoneError(f"somebody else has just published to the branch {self._branch}; try again") from None

    def _write_import(self, stream: IO[bytes], ref: str, message: str) -> None:
        """The input of git-fast-import. Copies come first: they are of the branch as it is there."""
        committer = _DEFAULT_COMMITTER
        with suppress(LoadstoneError):  # nobody has set a name
            committer = self._git("var", "GIT_COMMITTER_IDENT").rpartition(b">")[0] + b">"
        stream.write(b"commit %s\ncommitter %s now\n" % (ref.encode(), committer))
        _write_data(stream, message.encode())
        if self._head:
            stream.write(b"from %s\n" % self._head.encode())
        for file in self._written.values():
            if file.copy_of is not None:
                stream.write(b"C %s %s\n" % (self._quoted(file.copy_of), self._quoted(file.name)))
        for name in self._removed:
            stream.write(b"D %s\n" % self._quoted(name))
        for file in self._written.values():
            if file.copy_of is None:
                stream.write(b"M 100644 inline %s\n" % self._quoted(file.name))
                _write_data(stream, file.read())
        stream.write(b"\n")

    def _quoted(self, name: str) -> bytes:
        """A path of the branch, quoted for git-fast-import."""
        text = (self._prefix + name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return b'"%s"' % os.fsencode(text)


def _write_data(stream: IO[bytes], content: bytes) -> None:
    stream.write(b"data %d\n%b\n" % (len(content), content))
