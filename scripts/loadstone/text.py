"""Numbers as text: loads (``at 100, 200 and 1,000 requests/s``, ``at 5 users``), counts, sizes, lists."""

from collections.abc import Iterable, Sequence

_SHOWN = 4  # loads named one by one


def rate_text(rate: float | None) -> str:
    """A number of requests/s or users as the shortest decimal, thousands separated: ``"1,000"``."""
    return "–" if rate is None else f"{rate:,.9f}".rstrip("0").rstrip(".")


def load_unit(models: Iterable[str | None], *, one: bool = False) -> str:
    """The unit of a load by the load models of its runs; `one`: of a load of 1."""
    requests, users = ("request/s", "user") if one else ("requests/s", "users")
    closed = {model == "closed" for model in models}
    if len(closed) == 2:
        return f"{requests} or {users}"
    return users if closed == {True} else requests


def at(rates: Iterable[float], of: Iterable[float], unit: str, *, every: bool = False) -> str:
    """Some `rates` of all those measured (`of`), counted in `unit` (`load_unit`).

    ``at 100 requests/s``, ``at all 3 loads``, ``at 5 of 27 loads, from 100 to 300 requests/s``. Where others lie
    between them, ``between 100 and 300``, or with `every` each of them: ``at 5 of 27 loads: 100 to 300 and 500 users``.
    """
    own = sorted(set(rates))
    known = sorted({*of, *own})
    if 1 < len(own) == len(known):
        return f"at all {len(own):,} loads"
    if len(own) <= _SHOWN:
        return f"at {listed(map(rate_text, own))} {unit}"
    spans = _spans(own, known)
    share = f"at {len(own):,} of {len(known):,} loads"
    if len(spans) == 1:
        return f"{share}, from {rate_text(own[0])} to {rate_text(own[-1])} {unit}"
    if not every:
        return f"{share}, between {rate_text(own[0])} and {rate_text(own[-1])} {unit}"
    return f"{share}: {listed(' to '.join(dict.fromkeys(map(rate_text, ends))) for ends in spans)} {unit}"


def _spans(own: Sequence[float], known: Sequence[float]) -> list[tuple[float, float]]:
    """First and last rate of each sequence of `own` without any other of `known` between them."""
    place = {rate: number for number, rate in enumerate(known)}
    starts = [number for number, rate in enumerate(own) if not number or place[rate] - place[own[number - 1]] > 1]
    return [(own[start], own[end - 1]) for start, end in zip(starts, [*starts[1:], len(own)], strict=True)]


def listed(texts: Iterable[str], last_by: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = texts
    return f"{', '.join(first)} {last_by} {last}" if first else last


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``1,350 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def megabytes(size: int) -> str:
    """A size in bytes as text: ``1,350.0 MB``."""
    return f"{size / 1e6:,.1f} MB"


def times(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


# --- Figures in texts of tables ---------------------------------------------------------------------------------------


def three(value: float) -> str:
    """Three digits, or all that stand before the point: ``0.462``, ``47.1``, ``4,009``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rounded(value: float, digits: int = 3) -> str:
    """Rounded to significant digits, never as a power of ten: ``30,000``."""
    return rate_text(round(float(f"{value:.{digits}g}"), 9) + 0.0)


def percent(share: float, sign: str = "") -> str:
    """Three digits: ``4.83 %``; with `sign` ``+``, ``+31 %`` of an increase."""
    return f"{sign if share > 0 else ''}{rounded(100 * share)} %"


def ms(time_ns: float) -> str:
    """A time (ns) in milliseconds: ``0.462 ms``, ``4,009 ms``."""
    return f"{three(time_ns / 1e6)} ms"
