"""Variants as readers know them: canonical name, label, order and colour of a folder name (config/variants.yaml)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loadstone.archive import parse_timestamp

# Okabe & Ito 2008, safe for colour-blind readers, without yellow (too faint on white); black last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")


@dataclass(frozen=True)
class Style:
    """How one variant is shown."""

    name: str
    label: str
    colour: str


@dataclass(frozen=True)
class Relabelled:
    """A variant that had another label at some time; `now_means` is the variant that this label stands for today."""

    name: str
    label: str
    former: str
    now_means: str | None


class Variants:
    """The declared variants of all apps; `declared` is the decoded config/variants.yaml: app -> variant -> fields."""

    def __init__(self, declared: Mapping[str, Mapping[str, Mapping[str, Any] | None]]) -> None:
        self.declared = declared
        self._canonical = {
            (app, folder): name
            for app, variants in declared.items()
            for name, fields in variants.items()
            for folder in (name, *(fields or {}).get("aliases", ()))
        }

    def names(self) -> dict[str, dict[str, dict[str, list[str]]]]:
        """The declaration without labels and colours: all that tables depend on."""
        return {
            app: {name: {"aliases": list((fields or {}).get("aliases", ()))} for name, fields in variants.items()}
            for app, variants in self.declared.items()
        }

    def over(self, app: str) -> dict[str, tuple[str, ...]]:
        """What each declared variant of an app is built upon, in declared order; nothing for the lowest."""
        found = {}
        for name, fields in self.declared.get(app, {}).items():
            over = (fields or {}).get("over", ())
            found[name] = (over,) if isinstance(over, str) else tuple(over)
        return found

    def canonical(self, app: str, folder: str) -> str:
        """The canonical name of a variant's folder; an undeclared folder keeps its own name."""
        return self._canonical.get((app, folder), folder)

    def folders(self, app: str) -> list[str] | None:
        """Every folder name that an app's declaration knows, sorted; None for an app that is not declared at all."""
        return sorted(folder for of, folder in self._canonical if of == app) if app in self.declared else None

    def label_at(self, app: str, name: str, instant: datetime) -> str:
        """The label that a variant had at an instant."""
        fields = self.declared.get(app, {}).get(name) or {}
        for former in fields.get("history", ()):
            until = parse_timestamp(former["until"])
            if until is not None and instant < until:
                return str(former["label"])
        return str(fields.get("label", name))

    def relabelled(self, app: str, present: Iterable[str], instant: datetime) -> list[Relabelled]:
        """Those of the variants that were called something else at an instant, in declared order."""
        today = {str((fields or {}).get("label", name)): name for name, fields in self.declared.get(app, {}).items()}
        found = []
        for style in self.styles(app, present):
            former = self.label_at(app, style.name, instant)
            if former != style.label:
                found.append(Relabelled(style.name, style.label, former, today.get(former)))
        return found

    def styles(self, app: str, present: Iterable[str], planned: Iterable[str] = ()) -> list[Style]:
        """Styles of the variants that are present: in declared order, then as folders were `planned`, then by name."""
        declared = self.declared.get(app, {})
        names = set(present)
        known = [*declared, *(self.canonical(app, folder) for folder in planned)]
        ordered = [*(name for name in dict.fromkeys(known) if name in names), *sorted(names.difference(known))]
        taken = {(declared[name] or {}).get("colour") for name in ordered if name in declared}
        free = [colour for colour in PALETTE if colour not in taken] or list(PALETTE)
        styles = []
        for position, name in enumerate(ordered):
            fields = declared.get(name) or {}
            colour = fields.get("colour") or free[position % len(free)]
            styles.append(Style(name, fields.get("label", name), colour))
        return styles
