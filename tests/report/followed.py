"""Raw results of an archive of chance, read back and summed up with numpy alone, and the figures that a page claims.

Nothing of the library reads here: the files are opened, counted and summed up as anybody would who does not have it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard
from loadstone.percentiles import PERCENTILES, label
from report.printed import Table, Tables, agrees, number
from support import rawfiles

RATES = (100, 300)
LABELS = {"Direct": "plain", "Mesh": "istio", "Filter": "filter", "Reported": "reported"}
EARLY, LATE = "2026-11-21T11:00:00+00:00", "2026-12-01T11:00:00+00:00"
SECONDS = 5
LIMIT_S = 30
MS = 1e6
TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


# --- raw files -------------------------------------------------------------------------------------------------------


def run_lines(
    generator: np.random.Generator, rate: int, slower: float, timeouts: float = 0, failing: float = 1
) -> bytes:
    """Requests of one run, some of which fail, sent a little late. Of `timeouts` of them the tool writes no latency.

    About 5 % fail, times `failing`.
    """
    count = rate * SECONDS
    latencies_ns = 4e6 * slower * generator.lognormal(0, 0.5, count)
    codes = np.where(generator.random(count) < 0.03 * slower * failing, 503, 200)
    codes = np.where(generator.random(count) < 0.02 * failing, 0, codes)
    late_ns = generator.exponential(50_000, count)
    timed_out = generator.random(count) < timeouts
    codes, latencies_ns = np.where(timed_out, 0, codes), np.where(timed_out, 0, latencies_ns)
    return b"".join(
        rawfiles.line(
            seq,
            int(latencies_ns[seq]),
            code=int(codes[seq]),
            error="" if codes[seq] else TIMED_OUT if timed_out[seq] else "read: connection reset by peer",
            sent_ns=rawfiles.START_NS + round(seq * 1e9 / rate + late_ns[seq]),
        )
        for seq in range(count)
    )


def write_archive(root: Path, seed: int, later: float = 1.0, failing: float = 1.0) -> None:
    """Two campaigns of raw results, with warm-ups.

    In the first a run was cut short; in both requests of one variant time out at one rate, and there is a variant with
    reports alone. In the second the slowest variant takes `later` times as long. `failing` is
    that of `run_lines`.
    """
    generator = np.random.default_rng(seed)
    for at in (EARLY, LATE):
        for rate in RATES:
            fields = {"rate": str(rate), "duration": f"{SECONDS}s", "timeout": f"{LIMIT_S}s"}
            options = {"at": at, "rate": str(rate), "testOptions": fields, "runs": 3}
            for slower, variant in enumerate(("plain", "istio", "filter"), 1):
                files = {}
                for run in (1, 2, 3):
                    timeouts = 0.004 if (variant, rate) == ("filter", 300) else 0
                    times = slower * generator.uniform(0.9, 1.1)
                    times *= later if (at, variant) == (LATE, "filter") else 1
                    lines = run_lines(generator, rate, times, timeouts, failing)
                    if (at, rate, variant, run) == (EARLY, 100, "istio", 2):
                        lines = b"".join(lines.splitlines(keepends=True)[: rate * SECONDS // 2])
                    files[f"{run}.results.json.zst"] = rawfiles.compress(lines)
                    files[f"{run}.warmups.json.zst"] = rawfiles.compress(run_lines(generator, rate, 20, 0.5))
                    files[f"{run}.summary.json"] = rawfiles.vegeta("report", "-type=json", stdin=lines)
                rawfiles.write_cell(root, files, variant=variant, **options)
            report = rawfiles.vegeta("report", "-type=json", stdin=run_lines(generator, rate, 5, failing=failing))
            rawfiles.write_cell(root, {"1.summary.json": report}, variant="reported", **options)


@dataclass(frozen=True)
class Run:
    """One run as its raw file has it, in the order of sending; without requests where there is only a `report`.

    Requests that timed out took at least the time limit.
    """

    at: str
    variant: str
    rate: int
    number: int
    latencies_ns: np.ndarray
    codes: np.ndarray
    timed_out: np.ndarray
    sent_ns: np.ndarray
    report: dict

    @property
    def counts(self) -> bool:
        return not self.codes.size or len(self.codes) == self.rate * SECONDS

    @property
    def failed(self) -> float:
        return float(((self.codes < 200) | (self.codes >= 400)).mean())


def read(campaign: Path) -> list[Run]:
    """Every run of a campaign's folder."""
    return sorted(map(_read, campaign.glob("*/*/*.summary.json")), key=lambda run: (run.rate, run.variant, run.number))


def _read(summary: Path) -> Run:
    results = summary.with_name(summary.name.replace(".summary.json", ".results.json.zst"))
    records = []
    if results.exists():
        with zstandard.open(results, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines.read().splitlines()]
    sent = [_nanoseconds(record["timestamp"]) for record in records]
    timed_out = ["Timeout" in record["error"] for record in records]
    latencies = [
        max(record["latency"], LIMIT_S * 10**9) if late else record["latency"]
        for record, late in zip(records, timed_out, strict=True)
    ]
    codes = [record["code"] for record in records]
    place = (
        summary.parents[2].name,
        summary.parent.name,
        int(summary.parent.parent.name),
        int(summary.name.partition(".")[0]),
    )
    return Run(*place, *map(np.array, (latencies, codes, timed_out, sent)), json.loads(summary.read_text()))


def _nanoseconds(timestamp: str) -> int:
    whole = timestamp.removesuffix("Z") + ("" if "." in timestamp else ".")
    seconds, _, decimals = whole.partition(".")
    return int(np.datetime64(seconds, "s").astype(int)) * 10**9 + int(decimals.ljust(9, "0") or 0)


# --- what a page claims ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A figure on a page: where it stands, what is printed, and how numpy has it."""

    where: str
    text: str
    value: Callable[[], float]
    whole: bool = False

    @property
    def holds(self) -> bool:
        return agrees(self.text, self.value(), whole=self.whole)


def pooled(runs: list[Run]) -> np.ndarray:
    return np.concatenate([run.latencies_ns for run in runs])


def of_cell(runs: list[Run], name: str) -> float:
    """A figure of the runs of one cell that count, by the name of its column."""
    means = [run.latencies_ns.mean() for run in runs]
    good = np.concatenate([run.codes for run in runs]) == 200
    if name in (quantiles := {label(name): share for name, share in PERCENTILES.items()}):
        return float(np.quantile(pooled(runs), quantiles[name])) / MS
    reports = [run.report for run in runs]
    figures: dict[str, Callable[[], float]] = {
        "Mean ± sd": lambda: np.mean(means) / MS,
        "± sd": lambda: np.std(means) / MS,
        "Mean": lambda: pooled(runs).mean() / MS,
        "Mean of requests": lambda: pooled(runs).mean() / MS,
        "± of requests": lambda: pooled(runs).std() / MS,
        "Mean of code 200": lambda: pooled(runs)[good].mean() / MS,
        "± of code 200": lambda: pooled(runs)[good].std() / MS,
        "Mean of runs": lambda: mean_of_reports(runs),
        "± of runs": lambda: np.std([report["latencies"]["mean"] for report in reports]) / MS,
        "Failed": lambda: np.mean([run.failed for run in runs]),
        "Failed requests": lambda: np.mean([run.failed for run in runs]),
        "Error fraction": lambda: np.mean([run.failed for run in runs]),
        "503": lambda: np.mean([(run.codes == 503).mean() for run in runs]),
        "Code 0": lambda: np.mean([(run.codes == 0).mean() for run in runs]),
        "Other codes": lambda: np.mean([(~np.isin(run.codes, (0, 200, 503))).mean() for run in runs]),
    }
    return float(figures[name]())


def mean_of_reports(runs: list[Run]) -> float:
    return float(np.mean([run.report["latencies"]["mean"] for run in runs])) / MS


def lag_p99_ms(run: Run) -> float:
    """How late 99 % of a run's requests were at most: request n is due n intervals after the first was."""
    due_ns = np.arange(len(run.sent_ns)) * (10**9 // run.rate)
    late_ns = run.sent_ns - due_ns
    return float(np.quantile(late_ns - late_ns.min(), 0.99)) / MS


class Reader:
    """Somebody with a page and the raw runs behind it."""

    def __init__(self, page: Path, runs: list[Run], tables: Mapping[str, Table] | None = None) -> None:
        self.page, self.runs = page, runs
        self.tables = Tables(page).found if tables is None else tables

    def claims(self) -> Iterator[Claim]:
        for table, read_table in (
            ("All cells", self._cells),
            ("All figures", self._cells),
            ("Cells with excluded runs", self._with_excluded),
            ("All verdicts", self._verdicts),
            ("Send lag", self._lag),
            ("Errors by cause", self._causes),
            ("As reported by the tool", self._reported),
            ("Run by run", self._reported),
            ("Campaigns", self._campaigns),
        ):
            if table in self.tables:
                for row in self.tables[table].records():
                    yield from read_table(table, row)

    def _claim(self, table: str, row: dict[str, list[str]], column: str, value: Callable[[], float], **how) -> Claim:
        below = how.pop("below", 0)
        of = ", ".join(row[name][0] for name in row if name.startswith(("Load", "Variant", "Figure")))
        return Claim(f"{self.page.name}, {table}, {of}, {column}", row[column][below], value, **how)

    def _cell(self, row: dict[str, list[str]]) -> tuple[list[Run], list[Run]]:
        """The runs of a row that count and those that do not."""
        (load,) = (row[name] for name in row if name.startswith("Load"))
        place = LABELS[row["Variant"][0]], number(load[0])
        own = [run for run in self.runs if (run.variant, run.rate) == place]
        return [run for run in own if run.counts], [run for run in own if not run.counts]

    def _cells(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        runs, left_out = self._cell(row)
        raw = [run for run in runs if run.codes.size]
        for column in row:
            name = column.removesuffix("(ms)").strip()
            if name in ("Runs", "Excluded", "Requests"):
                counts = {"Runs": len(runs), "Excluded": len(left_out), "Requests": sum(len(run.codes) for run in runs)}
                yield self._claim(table, row, column, lambda n=counts[name]: n, whole=True)
            elif raw and not column.startswith(("Load", "Variant")):
                yield self._claim(table, row, column, lambda n=name: of_cell(raw, n))
                if name.startswith("Mean"):
                    spread = {"Mean ± sd": "± sd"}.get(name, name.replace("Mean", "±"))
                    yield self._claim(table, row, column, lambda n=spread: of_cell(raw, n), below=1)
            elif name == "Mean of runs":
                yield self._claim(table, row, column, lambda: mean_of_reports(runs))

    def _with_excluded(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        runs, left_out = self._cell(row)
        runs = runs if row["Runs"][0] == "valid" else runs + left_out
        columns = {"Mean ± sd": "Mean ± sd (ms)", "Median": "Median (ms)", "p99": "p99 (ms)", "Failed": "Failed"}
        for name, column in columns.items():
            yield self._claim(table, row, column, lambda n=name: of_cell(runs, n))
        yield self._claim(table, row, "Number", lambda: len(runs), whole=True)

    def _verdicts(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        if row["Verdict"][0] == "–" or row["Variant"][0] == "Reported":
            return
        statistic = row["Figure"][0]
        after, before = self._cell(row)[0], self._cell({**row, "Variant": ["Direct"]})[0]
        figures = {"Variant (ms)": after, "Baseline (ms)": before}
        for column, runs in figures.items():
            if row[column][0] != "–":
                yield self._claim(table, row, column, lambda r=runs: of_cell(r, statistic))
        if row["Ratio"][0] != "–":
            yield self._claim(table, row, "Ratio", lambda: of_cell(after, statistic) / of_cell(before, statistic))
        if row["Shift (ms)"][0] != "–":
            shift = of_cell(after, statistic) - of_cell(before, statistic)
            yield self._claim(table, row, "Shift (ms)", lambda: shift)
        yield self._claim(table, row, "Runs", lambda: len(after), whole=True)

    def _lag(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        runs, _ = self._cell(row)
        lags = [lag_p99_ms(run) for run in runs]
        yield self._claim(table, row, "Send lag p99 (ms)", lambda: float(np.median(lags)))
        yield self._claim(table, row, "Worst run (ms)", lambda: max(lags))
        yield self._claim(table, row, "Which run", lambda: runs[int(np.argmax(lags))].number, whole=True)

    def _causes(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        cause = row["Cause"][1].partition(",")[0]
        code = 503 if cause == "http_503" else 0
        counting = [run for run in self.runs if run.counts]
        of_timeouts = sum(int(run.timed_out.sum()) for run in counting)
        of_code = sum(int((run.codes == code).sum()) for run in counting)
        reported = sum(run.report["status_codes"].get(str(code), 0) for run in counting if not run.codes.size)
        total = {
            "http_503": of_code + reported,
            "reset": of_code - of_timeouts,
            "timeout_before_headers": of_timeouts,
            "no_text": reported,
        }[cause]
        yield Claim(f"{self.page.name}, {table}, {cause}", row["Requests"][0], lambda: total, whole=True)

    def _reported(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        runs, _ = self._cell(row)
        measured = next((row[name][0][:10] for name in row if name.startswith(("Campaign", "Measured"))), "")
        (report,) = (run.report for run in runs if run.at.startswith(measured))
        yield self._claim(table, row, "Requests", lambda: report["requests"], whole=True)
        yield self._claim(table, row, "Success", lambda: report["success"])
        for column, name in (("Mean", "mean"), ("Median", "50th"), ("p90", "90th"), ("p99", "99th"), ("Max", "max")):
            if column in row:
                yield self._claim(table, row, column, lambda n=name: report["latencies"][n] / MS)

    def _campaigns(self, table: str, row: dict[str, list[str]]) -> Iterator[Claim]:
        when = EARLY if "November" in "".join(row["Campaign"]) else LATE
        runs = read(self.page.parents[2] / "archive/demo/here" / when)
        for column, counts in (("Valid runs", True), ("Excluded runs", False)):
            total = sum(run.counts is counts for run in runs)
            yield Claim(f"{self.page.name}, {table}, {when}, {column}", row[column][0], lambda t=total: t, whole=True)
