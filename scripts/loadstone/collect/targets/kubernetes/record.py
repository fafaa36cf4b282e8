"""The record of what a session changes in a cluster, written before the first change: in the cluster and on disk.

The ConfigMap serves the next command from any machine; the file helps when somebody has deleted the ConfigMap. A file
whose id the ConfigMap lists as restored is ignored, so that nothing is restored twice.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadstone.archive.durable import replace, sync
from loadstone.collect.targets.kubernetes.changes import Field
from loadstone.collect.targets.kubernetes.client import Cluster, ConflictError
from loadstone.collect.targets.kubernetes.objects import CONFIG_MAP, DEPLOYMENT, HELM_RELEASE, KUSTOMIZATION, Kind
from loadstone.errors import LoadstoneError

NAME = "loadstone-record"
KINDS: dict[str, Kind] = {kind.name: kind for kind in (DEPLOYMENT, KUSTOMIZATION, HELM_RELEASE)}
_KEY, _RESTORED = "record.json", "restored"
_REMEMBERED = 200
_PAUSE_S = 0.1
_LARGEST_BYTES = 900_000  # a ConfigMap holds 1 MiB at most


@dataclass(frozen=True)
class Changed:
    """One object that a session changes."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Record:
    """Everything that one session changes, in the order in which it is restored."""

    id: str
    holder: str
    since: str
    server: str
    objects: tuple[Changed, ...] = ()
    claims: tuple[str, ...] = ()  # namespaces that it has claimed
    namespace: str = ""  # of its Lease; empty in records of older versions
    load: str = ""  # namespace of its load generators; empty without any

    def encoded(self) -> str:
        """As JSON."""
        objects = [
            {**vars(each), "kind": each.kind.name, "fields": [one.encoded() for one in each.fields]}
            for each in self.objects
        ]
        return json.dumps({**vars(self), "objects": objects}, separators=(",", ":"))

    @classmethod
    def decoded(cls, text: str, where: str) -> "Record":
        """Inverse of `encoded`. Raises LoadstoneError, which names `where` the text was found, when it is invalid."""
        try:
            content = json.loads(text)
            objects = tuple(
                Changed(**{**each, "kind": KINDS[each["kind"]], "fields": tuple(map(Field.decoded, each["fields"]))})
                for each in content["objects"]
            )
            return cls(**{**content, "objects": objects, "claims": tuple(content.get("claims", ()))})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LoadstoneError(
                f"{where}, the record of what has to be restored, can't be read ({type(error).__name__}: {error}); "
                "restore the cluster by hand, then delete the record"
            ) from None


class Records:
    """Stores the record of a cluster: in the ConfigMap of `namespace`, and in `file`."""

    def __init__(self, cluster: Cluster, namespace: str, file: Path) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self.file = file

    def find(self) -> Record | None:
        """The record of what is still to be restored; None when the cluster is as it was.

        Raises LoadstoneError when the file is from a sweep whose Lease is in another namespace: it may be running.
        """
        held = self._cluster.get(CONFIG_MAP, self._namespace, NAME)
        data = (held or {}).get("data") or {}
        if _KEY in data:
            return Record.decoded(data[_KEY], f"the ConfigMap {self._namespace}/{NAME}")
        if not self.file.exists():
            return None
        record = Record.decoded(self.file.read_text(encoding="utf-8", errors="replace"), str(self.file))
        if record.id in data.get(_RESTORED, "").split():
            self._remove_file()
            return None
        if record.server != self._cluster.host:
            return None
        if record.namespace not in ("", self._namespace):
            raise LoadstoneError(
                f"an earlier sweep of this folder (since {record.since}) changed {record.server} under the Lease in "
                f"the namespace {record.namespace}, not {self._namespace}: restore that first, by "
                f"`snakemake --cores 1 restore` with `namespace: {record.namespace}` in target"
            )
        return record

    def write(self, record: Record) -> None:
        """Store a record, on disk first. Raises LoadstoneError when it is too large for the cluster."""
        text = record.encoded()
        if len(text.encode()) > _LARGEST_BYTES:
            raise LoadstoneError(
                f"the record of the planned changes has {len(text.encode()):,} bytes, more than a ConfigMap can hold; "
                "measure fewer variants at once, or change less of them"
            )
        replace(self.file, text.encode(), mode=0o600)  # environments may hold credentials
        sync(self.file)
        sync(self.file.parent)
        self._update(lambda data: data | {_KEY: text})

    def clear(self, record: Record) -> None:
        """Remove this record, which has been restored; a record with another id stays."""

        def cleared(data: dict[str, str]) -> dict[str, str]:
            known = [*data.get(_RESTORED, "").split(), record.id]
            own = _KEY in data and Record.decoded(data[_KEY], "the record").id == record.id
            kept = {key: value for key, value in data.items() if key != _KEY or not own}
            return kept | {_RESTORED: " ".join(dict.fromkeys(known[-_REMEMBERED:]))}

        self._update(cleared)
        if self.file.exists() and Record.decoded(self.file.read_text(errors="replace"), str(self.file)).id == record.id:
            self._remove_file()

    def _remove_file(self) -> None:
        self.file.unlink(missing_ok=True)
        sync(self.file.parent)

    def _update(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        while True:
            held = self._cluster.get(CONFIG_MAP, self._namespace, NAME)
            write = self._cluster.replace if held else self._cluster.create
            content = held or {"metadata": {"name": NAME}}
            try:
                write(CONFIG_MAP, self._namespace, content | {"data": change(content.get("data") or {})})
            except ConflictError:
                time.sleep(_PAUSE_S)
            else:
                return
