"""The page of a variant over time, from table `history` alone, and the list of such pages."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, parse_timestamp
from loadstone.config.variants import PALETTE, Style, Variants, look
from loadstone.percentiles import ERRORS, STATISTICS, label, title
from loadstone.report import chart_rows, charts, numbers, site_layout
from loadstone.report.numbers import SHOWN, Unit, moment, page_unit, rate_name, significant, span
from loadstone.report.output import site_context, write_page
from loadstone.report.queries import Queries, Row
from loadstone.report.site_layout import slug, variant_slug
from loadstone.stats.history import LEAST_TO_ESTIMATE
from loadstone.tables import database
from loadstone.tables.layout import text
from loadstone.text import counted, load_unit, rate_text

Pages = Mapping[tuple[str, str, str], str]  # app, host and timestamp of a campaign -> its page


@dataclass(frozen=True)
class VariantHistory:
    """A variant of an app, and its rows of ``page_history.sql``; `pages` are those of all campaigns."""

    app: str
    variant: str
    rows: Sequence[Row]
    pages: Pages

    @property
    def slug(self) -> str:
        return variant_slug(self.app, self.variant)

    @cached_property
    def campaigns(self) -> list[Row]:
        """A row per campaign, in the order of time."""
        found = {(row["host"], row["timestamp"]): row for row in self.rows}
        return sorted(found.values(), key=lambda row: (row["started_at"] is None, _moment(row), row["host"]))

    @cached_property
    def load_unit(self) -> str:
        return load_unit(row["load_model"] for row in self.rows)

    @cached_property
    def hosts(self) -> list[str]:
        """Those with the most figures first."""
        return [host for host, _ in Counter(row["host"] for row in self.rows).most_common()]

    @cached_property
    def changes(self) -> list[Row]:
        """The rows at which a new level begins, each with `before`, the value of the level before."""
        found = []
        for _, group in groupby(self.rows, key=_series):
            before = None
            for row in group:
                if row["change"]:
                    found.append(row | {"before": before})
                before = row["level_value"]
        return sorted(found, key=lambda row: (row["started_at"] is None, _moment(row)), reverse=True)

    def page_of(self, row: Row) -> str | None:
        return self.pages.get((self.app, row["host"], row["timestamp"]))


def pages_of(app: str, variants: Iterable[str]) -> dict[str, str]:
    """The addresses of the pages of an app's variants, by name, for a page in a folder of the site."""
    return {name: f"../variants/{variant_slug(text(app), name)}.html" for name in variants}


def histories(rows: Sequence[Row], names: Sequence[tuple[str, str]], pages: Pages) -> list[VariantHistory]:
    """The history of each of these variants (app, variant); those without any figure have one without rows."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["app"], row["variant"]), []).append(row)
    return [VariantHistory(*name, found.get(name, []), pages) for name in names]


def context(page: VariantHistory, variants: Variants) -> dict[str, Any]:
    """The variables of ``variant.html``."""
    (style,) = variants.styles(page.app, [page.variant])
    unit = page_unit([row["value"] for row in page.rows if row["statistic"] == "p50"])
    ways = [way for way, _ in Counter(row["way"] for row in page.rows).most_common()]
    rest = [colour for colour in PALETTE if colour != style.colour]
    looks = [look(place, [style.colour, *rest]) for place in range(len(ways))]
    styles = [Style(way, way, *shown) for way, shown in zip(ways, looks, strict=True)]
    loads = sorted({row["rate"] for row in page.rows})
    changes = page.changes
    return {
        "title": f"{style.label} over time",
        "heading": f"{style.label} over time",
        "lead": _lead(page, loads),
        "app": page.app,
        "variant": page.variant,
        "styles": styles,
        "statistics": {name: label(name) for name in STATISTICS},
        "unit": unit,
        "load_unit": page.load_unit,
        "rates": [(rate_name(rate), rate_text(rate)) for rate in loads],
        "hosts": [(host, host) for host in page.hosts],
        "found": _found(changes, page, unit),
        "changes": [_change(row, unit, page) for row in changes[:SHOWN]],
        "n_changes": len(changes),
        "campaigns": [row | {"page": page.page_of(row)} for row in reversed(page.campaigns)],
        "data": script_data(page, styles, unit, loads),
        "specs": charts.history_specifications(styles, unit),
    }


def entry(page: VariantHistory, variants: Variants) -> dict[str, Any]:
    """The entry of one variant in the list of variants."""
    (style,) = variants.styles(page.app, [page.variant])
    return {
        "page": page,
        "style": style,
        "from_to": _from_to(page.campaigns),
        "rates": span(row["rate"] for row in page.rows),
        "load_unit": page.load_unit,
        "n_changes": len({(row["host"], row["timestamp"]) for row in page.changes}),
        "last_change": next((moment(row["timestamp"]) for row in page.changes), None),
    }


def script_data(page: VariantHistory, styles: Sequence[Style], unit: Unit, loads: Sequence[float]) -> dict[str, Any]:
    """What the page's script reads; ``history`` has the rows of its chart by host, load and statistic."""
    ways = {style.name: place for place, style in enumerate(styles)}
    steps = {way: _step(page.rows, way, unit) for way in ways}
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in page.rows:
        groups.setdefault((row["host"], rate_name(row["rate"]), row["statistic"]), []).append(row)
    history: dict[str, dict[str, dict[str, Any]]] = {}
    for (host, load, statistic), rows in groups.items():
        points = [_point(row, ways, unit) for row in rows]
        is_share = statistic == ERRORS
        level_text = partial(_level_text, steps=[None if is_share else step for step in steps.values()])
        found = chart_rows.history(points, level_text, "%" if is_share else unit.symbol)
        history.setdefault(host, {}).setdefault(load, {})[statistic] = found
    return {
        "folder": page.slug,
        "unit": unit.symbol,
        "step": None,
        "steps": list(steps.values()),
        "load_unit": page.load_unit,
        "variants": chart_rows.variants(styles),
        "rates": [rate_name(rate) for rate in loads],
        "rate": _first_load(page),
        "statistic": "p50",
        "statistics": {name: title(name) for name in STATISTICS},
        "choices": {"host": page.hosts},
        "chosen": {"host": page.hosts[0] if page.rows else ""},
        "charts": {"history": history},
    }


def _point(row: Row, ways: Mapping[str, int], unit: Unit) -> Row:
    """A figure of one campaign; latencies in the page's unit, shares in percent."""
    return {
        "variant": ways[row["way"]],
        "at": row["started_at"] and _moment(row) * 1000,
        "when": moment(row["timestamp"]),
        **{name: _shown(row, name, unit) for name in ("value", "low", "high", "level_value")},
        "runs": row["n_runs"],
        "level": row["level"],
        "change": row["change"],
        "differs": "; ".join(row["differs"] or ()),
        "note": row["note"] or "",
        "at_least": row["at_least"],
    }


def _level_text(point: Row, *, steps: Sequence[list[float] | None]) -> str:
    """The value of a point's level; `steps` of latencies are by the point's way of measuring."""
    step, value = steps[point["variant"]], point["level_value"]
    return f"{value:.{int(step[1])}f}" if step else significant(value)


def _step(rows: Sequence[Row], way: str, unit: Unit) -> list[float] | None:
    """The step in which the latencies of one way of measuring come, and its decimals, where it is coarse."""
    return numbers.coarse_step((row | {"evidence": "raw"} for row in rows if row["way"] == way), unit)


def _first_load(page: VariantHistory) -> str | None:
    """The load that most campaigns of the first host have; of several, the one in the middle."""
    if not page.rows:
        return None
    counts = Counter(row["rate"] for row in page.rows if row["host"] == page.hosts[0])
    most = sorted(rate for rate, number in counts.items() if number == max(counts.values()))
    return rate_name(most[len(most) // 2])


def _shown(row: Row, name: str, unit: Unit) -> float | None:
    value = row[name]
    if value is not None and row["statistic"] == ERRORS:
        return numbers.rounded(100 * value, 6)
    step = row["resolution_ns"] or 0
    return unit.of(round(value / step) * step if value is not None and step >= numbers.COARSE_NS else value)


def _change(row: Row, unit: Unit, page: VariantHistory) -> dict[str, Any]:
    before, after = row["before"], row["level_value"]
    if row["statistic"] == ERRORS:
        texts, symbol, by = [significant(100 * value) for value in (before, after)], "%", ""
    else:
        texts = [numbers.latency_text(value, unit, row["resolution_ns"]) for value in (before, after)]
        symbol, by = unit.symbol, _by(after / before)
    return row | {
        "page": page.page_of(row),
        "statistic": title(row["statistic"]),
        "address": {"host": row["host"], "rate": rate_name(row["rate"]), "stat": row["statistic"]},
        "from_to": f"{texts[0]} to {texts[1]} {symbol}",
        "by": by,
    }


def _by(ratio: float) -> str:
    """The change between two levels: ``+12.3 %``, ``−94.1 %``; from a factor of two on ``140×``."""
    return f"{numbers.signed(f'{100 * (ratio - 1):.3g}')} %" if ratio < numbers.MULTIPLE else f"{significant(ratio)}×"


def _found(changes: Sequence[Row], page: VariantHistory, unit: Unit) -> str:
    lengths = Counter(map(_series, page.rows))
    n_series = len(lengths)
    if len(page.campaigns) < 2:
        return "There is only one campaign, so there are no changes yet." if page.rows else ""
    short = sum(length < LEAST_TO_ESTIMATE for length in lengths.values())
    unsure = (
        f" Small changes are not detected in {counted(short, 'series', 'series')} with fewer than "
        f"{LEAST_TO_ESTIMATE} campaigns."
        if short
        else ""
    )
    if not changes:
        return f"No change of level in any of {n_series:,} series (one per load and statistic).{unsure}"
    last = changes[0]
    n_changed = len({_series(row) for row in changes})
    shown = _change(last, unit, page)
    size = f"{shown['from_to']} ({shown['by']})" if shown["by"] else shown["from_to"]
    load = f"{rate_text(last['rate'])} {load_unit([last['load_model']])}"
    return (
        f"The level changed in {n_changed:,} of {n_series:,} series (one per load and statistic). The last change: "
        f"{label(last['statistic']).lower()} at {load}, from {size}, on {moment(last['timestamp'])}.{unsure}"
    )


def _lead(page: VariantHistory, loads: Sequence[float]) -> str:
    if not page.rows:
        return f"No campaign of {page.app} has a figure of this variant: figures need valid runs."
    campaigns = page.campaigns
    return (
        f"{page.app}: {counted(len(campaigns), 'campaign')} on {counted(len(page.hosts), 'host')}, "
        f"{_from_to(campaigns)}, at {span(loads)} {page.load_unit}."
    )


def _from_to(campaigns: Sequence[Row]) -> str:
    known = [moment for row in campaigns if (moment := parse_timestamp(row["timestamp"]))]
    days = [f"{each.day} {each:%B %Y}" for each in (*known[:1], *known[-1:])]
    return " to ".join(dict.fromkeys(days)) or "at no known time"


def _series(row: Row) -> tuple[Any, ...]:
    return row["host"], row["rate"], row["way"], row["statistic"]


def _moment(row: Row) -> float:
    return row["started_at"].timestamp() if row["started_at"] else 0.0


def build_variants(
    names: Sequence[tuple[str, str]],
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    *,
    options: Mapping[str, Any],
) -> Path:
    """Write the page of every variant (app, variant) over time and the list of them; returns the list's path.

    Of tables they read `history` alone; the pages of other variants are removed.
    """
    with database.open_memory() as connection:
        database.add_view(connection, tables, "history", None)
        rows = Queries(connection, tables, None).rows("page_history")
    linked = {}
    for campaign in campaigns:
        key = text(campaign.app), text(campaign.host), text(campaign.timestamp)
        linked[key] = f"campaigns/{slug(campaign)}.html"
    part = site_layout.Part(reports, "variants").begin()
    about, pages = site_context(options, tables), histories(rows, names, linked)
    for page in pages:
        content = context(page, variants)
        write_page(reports / "variants" / f"{page.slug}.html", "variant.html", {**content, **about})
    entries = [entry(page, variants) for page in pages]
    path = reports / "variants.html"
    write_page(path, "variants.html", {"entries": entries, **about})
    site_layout.remove_others(reports / "variants", {f"{page.slug}.html" for page in pages})
    site_layout.remove_others(reports / "figures" / "variants", {page.slug for page in pages}, are_figures=True)
    part.finish([path, *(reports / "variants" / f"{page.slug}.html" for page in pages)])
    return path
