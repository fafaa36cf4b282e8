"""Which phase of a file counts: whether it has the declared one, and what to say where none is declared."""

from loadstone.importing.declared import Refusal
from loadstone.importing.place import Placed
from loadstone.readers import FORMATS, Problems

_TELLS_PHASES = "artillery.json"  # before its requests are read
_WITHOUT = ("results.", "summary.json", "vegeta.txt", "hey.csv", "hdr.csv", "summary.csv")


def notice(placed: Placed) -> str | None:
    """A sentence for people where the last of several phases will count unasked. Raises Refusal."""
    declared, kind = placed.facts.get("measured_phase"), placed.source.format
    if declared is not None and kind.startswith(_WITHOUT):
        raise Refusal(f"measured_phase is {declared!r}, but such a file ({kind}) knows no phases; leave it out")
    report = FORMATS[kind].report if kind == _TELLS_PHASES else None
    read = report(placed.source.path, Problems()) if report else None
    names = [phase.name for phase in read.phases] if read else []
    listed = ", ".join(map(repr, names))
    if declared is not None and names and declared not in names:
        raise Refusal(f"measured_phase is {declared!r}, but its phases are {listed}")
    if declared is None and len(names) > 1:
        return f"{placed.source}: of its phases {listed} the last counts; if another does, say it: measured_phase"
    return None
