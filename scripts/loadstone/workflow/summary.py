"""What the newest complete campaign of the sweep found, as a table in the terminal at the end of a command."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadstone import archive
from loadstone.config.variants import Variants
from loadstone.errors import printable
from loadstone.report.numbers import Row, interval, latency_text, page_unit, styles_of
from loadstone.text import load_unit, rate_text
from loadstone.workflow.job import without_pandas

if TYPE_CHECKING:
    from loadstone.report.findings import Finding

_WIDTH = 120  # where the output is no terminal
_MOST_ROWS = 60
_COLOURS = {"slower": "red", "faster": "cyan", "equivalent": "green"}


@without_pandas()
def show(config: Mapping[str, Any], variants: Variants) -> None:
    """Print it to the standard output. Nothing without a complete campaign in the tables."""
    found = _newest_complete(config)
    if found is None:
        return
    # Half of what the summary takes, which commands without one don't need.
    from loadstone.report import conclusions, findings  # noqa: PLC0415
    from loadstone.report.queries import querying  # noqa: PLC0415

    with querying(Path(config["tables"]), [found]) as queries:
        effects, knees, claims = (queries.of_scope(table, None) for table in ("effects", "knees", "claims"))
        cells = queries.rows("page_cells", with_excluded=False)
        models = [model for row in queries.rows("page_campaigns") for model in row["load_models"]]
    if not cells:
        return
    styles = styles_of(variants, [found], found.app, {cell["variant"] for cell in cells})
    labels = {style.name: style.label for style in styles}
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print()
    effects = conclusions.with_caveats(effects, claims)
    by_cell = findings.findings(effects, labels)
    letters = conclusions.letters(claims)
    lettered = findings.lettered_caveats(by_cell.values(), letters)
    headline = findings.headline(findings.at_one_load(effects, knees, labels))
    if headline:
        mark = findings.letters_of_caveats(headline, letters)
        console.print(Text(f"{printable(headline.sentence)} {mark}".rstrip(), style="bold"))
    shown = {key: each for key, each in by_cell.items() if key[1] == "p50"}
    marks = {key: findings.mark(each, letters) for key, each in shown.items()}
    table = _table(cells, shown, marks, labels, load_unit(models))
    table.title = printable(str(found))
    console.print(table)
    used = findings.caveats([*shown.values(), *filter(None, [headline])])
    key = [f"{caveat['letter']} {caveat['heading']}" for kind, caveat in lettered.items() if kind in used]
    if "†" in marks.values():
        key.append("† significant on its own, but not after correction for multiple comparisons")
    if key:
        console.print(Text("; ".join(key)))
    console.print(Text(f"report: {Path(config['reports'], 'index.html')}"))


def _newest_complete(config: Mapping[str, Any]) -> archive.Campaign | None:
    root = Path(config["archive"])
    if "sweep" not in config or not root.is_dir():
        return None
    own = [
        each for each in archive.campaigns(root) if (each.app, each.host) == (config["sweep"]["app"], config["host"])
    ]
    return next((each for each in reversed(own) if each.is_completed), None)


def _table(
    cells: list[Row],
    found: Mapping[tuple[str, str, float], "Finding"],
    marks: Mapping[tuple[str, str, float], str],
    labels: Mapping[str, str],
    unit_of_load: str,
) -> Table:
    unit = page_unit([cell["p50_ns"] for cell in cells])
    table = Table(title_justify="left", title_style="", expand=False)
    table.add_column(f"load ({unit_of_load})", justify="right")
    table.add_column("variant")
    for name in (f"median ({unit.symbol})", "interval", "difference", "interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    order = list(labels)
    baselines = {each.baseline for each in found.values()}
    rows = sorted(cells, key=lambda cell: (cell["rate"], order.index(cell["variant"])))
    for cell in rows[:_MOST_ROWS]:
        bounds = cell["p50_low_ns"], cell["p50_high_ns"]
        key = cell["variant"], "p50", cell["rate"]
        finding = found.get(key)
        table.add_row(
            rate_text(cell["rate"]),
            Text(printable(labels[cell["variant"]])),
            latency_text(cell["p50_ns"], unit, cell["resolution_ns"]),
            "" if None in bounds else interval(*bounds, lambda end: latency_text(end, unit, None)),
            *(map(Text, finding.change) if finding else ("", "")),
            _verdict(finding, marks[key]) if finding else "baseline" if labels[cell["variant"]] in baselines else "",
        )
    if len(rows) > _MOST_ROWS:
        table.caption = f"and {len(rows) - _MOST_ROWS} more rows in table cells"
    return table


def _verdict(finding: "Finding", mark: str) -> Text:
    return Text(f"{finding.symbol} {finding.verdict} {mark}".rstrip(), style=_COLOURS.get(finding.verdict, ""))
