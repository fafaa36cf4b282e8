"""Section on lines fitted over the runs of a comparison: result, evidence and chart data of each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from loadstone.analysis.comparison import Fitted
from loadstone.report.numbers import Row, counted, joined, rounded, share, significant
from loadstone.text import listed, rate_text

_BAND_POINTS = 26


def context(fitted: Sequence[Fitted], names: Callable[[str], str], load_unit: str) -> list[dict[str, Any]]:
    """Title, sentences and evidence of each line for ``fits.html``, and its chart's data.

    `names` maps a variant to its series.
    """
    return [
        {
            "title": _capitalized(f"{_what(each)} by {_across(each, load_unit)}"),
            "result": _sentence(each, load_unit) if each.line else "",
            "problem": each.problem,
            "evidence": _evidence(each, load_unit),
            "axes": (_capitalized(_across(each, load_unit)), f"{_capitalized(_what(each))} ({each.fit.unit})"),
            "line": list(_band(each)),
            "runs": [
                {
                    "variant": names(point.variant),
                    "x": point.x,
                    "value": rounded(point.y, 6),
                    "run": point.run,
                    "load": rate_text(point.rate),
                    "rate": point.rate,
                }
                for point in each.points
            ],
        }
        for each in fitted
    ]


def _band(each: Fitted) -> Iterator[Row]:
    if each.line is None:
        return
    xs = [point.x for point in each.points]
    for x in np.linspace(min(xs), max(xs), _BAND_POINTS):
        value, low, high = each.line.at(float(x))
        yield {name: rounded(number, 6) for name, number in (("x", x), ("line", value), ("low", low), ("high", high))}


def _what(each: Fitted) -> str:
    of = {"cpu": "CPU", "memory": "memory", "p50": "median latency", "min": "least latency", "max": "greatest latency"}
    what = of.get(each.fit.of, f"{each.fit.of} latency")
    part = "all of the target" if each.fit.name == "TOTAL" else each.fit.name
    return f"{what} of {part}" if part else what


def _capitalized(text: str) -> str:
    """With its first letter in upper case, the others as they are."""
    return text[:1].upper() + text[1:]


def _across(each: Fitted, load_unit: str) -> str:
    return f"load ({load_unit})" if each.fit.x == "rate" else f"number of {each.fit.x}"


def _one(each: Fitted, load_unit: str) -> str:
    """The singular of x: ``pod`` for ``pods``."""
    name = load_unit if each.fit.x == "rate" else each.fit.x
    if name == "requests/s":
        return "request/s"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _sentence(each: Fitted, load_unit: str) -> str:
    line, unit, one = each.line, each.fit.unit, _one(each, load_unit)
    assert line is not None
    interval = f"{share(line.confidence)} interval {_span(line.slope_low, line.slope_high)}"
    slope = f"{_number(line.slope)} {unit} per {one}, {interval}"
    base = f"{_number(line.intercept)} {unit} intercept ({_span(line.intercept_low, line.intercept_high)})"
    zero = " The interval contains zero, so the slope is not significant."
    return f"{slope}; {base}.{zero if line.slope_low <= 0 <= line.slope_high else ''}"


def _number(value: float) -> str:
    return f"−{significant(-value)}" if value < 0 else significant(value)


def _span(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _evidence(each: Fitted, load_unit: str) -> str:
    xs = sorted({point.x for point in each.points})
    if not xs:
        return ""
    loads = listed([rate_text(rate) for rate in sorted({point.rate for point in each.points})])
    evidence = joined({"reported": "the tools' reports"}.get(point.evidence, point.evidence) for point in each.points)
    at = f"at {loads} {load_unit}"
    where = at if each.fit.x == "rate" else f"with {listed([f'{x:g}' for x in xs])} {each.fit.x}, {at}"
    student = f"(Student's t, {len(each.points) - 2} degrees of freedom)"
    band = f" The band is the {share(each.line.confidence)} interval of the line {student}." if each.line else ""
    left = f"; {counted(each.n_left_out, 'run')} without {_missing(each)} excluded" if each.n_left_out else ""
    return (
        f"Least squares over {counted(len(each.points), 'run')} {where}, each one point, from {evidence}{left}.{band}"
    )


def _missing(each: Fitted) -> str:
    """What an excluded run does not have."""
    used = each.fit.of in ("cpu", "memory")
    figure = "such a figure" if used else "such a figure in a report of its tool"
    return figure if each.fit.x == "rate" else f"a number of {each.fit.x} or {figure}"
