"""Tables of a made-up campaign, written in the layout of the real ones: shapes and names that no quick sweep gives."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from loadstone.analysis import distributions
from loadstone.analysis.run_requests import Cache, Pool, Source
from loadstone.archive import Campaign, Cell
from loadstone.percentiles import PERCENTILES, SHOWN_PERCENTILES
from loadstone.tables import database, layout
from loadstone.tables.exclusion import UNREADABLE, Exclusion, text
from loadstone.tables.schema import TABLES

_REQUESTS = TABLES["requests"]
_INCOMPLETE = Exclusion(UNREADABLE, detail="incomplete: 3 of <b>9</b> requests")
EPOCH_NS = int(datetime(2026, 11, 21, 11, 30, tzinfo=UTC).timestamp()) * 1_000_000_000


@dataclass(frozen=True)
class Made:
    """What the campaign is to hold. Latencies are log-normal around `base_ms` times the variant's position."""

    variants: Sequence[str]
    rates: Sequence[float]
    runs: int
    requests: int
    base_ms: float = 0.3
    failing: str | None = None
    saturated: str | None = None  # takes 200 times as long at the highest rate
    excluded: tuple[str, int] | None = None
    missing: tuple[str, int] | None = None
    warmup_s: float = 0.5


def write(tables: Path, campaign: Campaign, made: Made) -> None:
    """Write runs, requests, cells, planned and problems of one campaign, and what charts show of them."""
    runs: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    planned: list[dict[str, Any]] = []
    for rate in made.rates:
        for position, variant in enumerate(made.variants):
            key = layout.campaign_key(campaign) | {"variant": variant, "rate": rate}
            samples: dict[int, dict[str, np.ndarray]] = {}
            for run in range(1, made.runs + 1):
                collected = made.missing != (variant, run)
                planned.append(key | {"run": run, "variant_dir": variant, "position": 1, "collected": collected})
                if collected:
                    samples[run] = _requests(made, rate, position, run)
                    runs.append(key | _run(made, variant, run, rate))
            _write_requests(tables, Cell(campaign, f"{rate:g}", variant), key, samples)
            counting = [sample for run, sample in samples.items() if made.excluded != (variant, run)]
            cells.append(key | _cell([_tested(sample) for sample in counting], len(samples) - len(counting)))
    _write_pictured(tables, campaign, runs)
    problems = [
        layout.campaign_key(campaign) | {"source": "x/<b>notes</b>.txt", "problem": "is not a file of a <i>run</i>"}
    ]
    for table, rows in (("runs", runs), ("cells", cells), ("planned", planned), ("problems", problems)):
        layout.write_rows(tables, layout.partition(tables, table, campaign) / layout.PART, rows, table)


def write_compared(tables: Path, campaign: Campaign, comparison: str) -> None:
    """Rows of a comparison of everything in such a campaign: the figures of its cells, by all averages alike."""
    with database.connect(tables, [campaign]) as connection:
        cells = connection.sql("FROM cells").to_arrow_table().to_pylist()
    rows = []
    for cell in cells:
        row = {name: value for name, value in cell.items() if name in TABLES["comparisons"].names}
        row |= {"comparison": comparison, "timestamps": [cell["timestamp"]], "load_model": "open", "evidence": "raw"}
        row |= {"generator": "vegeta", "error_503_fraction": cell["error_fraction"], "error_0_fraction": 0.0}
        for name in ("vegeta_summaries", "all_raw_data"):
            figures = {"n_runs": cell["n_runs"], "mean_ns": cell["mean_ns"], "std_ns": cell["run_std_ns"]}
            row |= {f"{name}_{each}": value for each, value in figures.items()}
        row |= {"all_raw_data_ok_mean_ns": cell["ok_run_mean_ns"], "all_raw_data_ok_std_ns": cell["ok_run_std_ns"]}
        rows.append(row)
    layout.write_rows(tables, layout.comparison_file(tables, comparison), rows, "comparisons")


def _write_pictured(tables: Path, campaign: Campaign, runs: Sequence[dict[str, Any]]) -> None:
    """What charts show besides figures, by the real code, from the requests that were written."""
    drawn: dict[str, list[dict[str, Any]]] = {table: [] for table in ("run_figures", *distributions.POOLED)}
    with database.open_memory() as connection:
        source = Source(connection, tables, Cache(tables, layout.cache_file(tables, campaign)))
        for (rate, variant), group in groupby(runs, key=lambda run: (run["rate"], run["variant"])):
            file = layout.cell_file(tables, "requests", Cell(campaign, f"{rate:g}", variant)).relative_to(tables)
            own = [run | {"timeout_s": None, "requests_file": str(file)} for run in group]
            drawn["run_figures"] += distributions.run_figures(own, _figures(source, own))
            for table, rows in distributions.of_campaign(source, own).items():
                drawn[table] += rows
    for table, rows in drawn.items():
        layout.write_rows(tables, layout.partition(tables, table, campaign) / layout.PART, rows, table)


def _figures(source: Source, runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    def compute(pools: Sequence[Pool], files: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        for pool, run, found in source.requests(pools, files, with_excluded=True, also=distributions.REQUEST_COLUMNS):
            yield pool, {"series": run} | distributions.of_run(found)

    return [rows[0] for rows in source.of_cells(runs, compute, lambda _: None)]


def _requests(made: Made, rate: float, position: int, run: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng([run, position, round(rate * 1000)])
    warm = min(round(made.warmup_s * rate), made.requests)
    number = np.arange(-warm, made.requests)
    cold = 1 + 2 * np.exp(-np.maximum(number + warm, 0) / max(rate * 0.3, 1))
    median = made.base_ms * (1 + 0.8 * position) * (1 + (rate / (max(made.rates) * 1.3)) ** 3) * cold
    if made.saturated == made.variants[position] and rate == max(made.rates):
        median = median * 200
    latency_ns = (median * random.lognormal(0, 0.25, len(number)) * 1e6).astype(np.int64)
    failing = made.failing is not None and made.variants[position] == made.failing and rate >= max(made.rates) / 2
    failed = (random.random(len(number)) < 0.06) & failing & (number >= 0)
    return {
        "seq": np.where(number < 0, number + warm, number),
        "phase": np.where(number < 0, "warmup", "test"),
        "sent_ns": EPOCH_NS + run * 10**11 + (number * 1e9 / rate).astype(np.int64),
        "latency_ns": latency_ns,
        "code": np.where(failed, np.where(random.random(len(number)) < 0.5, 503, 0), 200),
    }


def _tested(sample: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values[sample["phase"] == "test"] for name, values in sample.items()}


def _run(made: Made, variant: str, run: int, rate: float) -> dict[str, Any]:
    excluded = made.excluded == (variant, run)
    return {
        "run": run,
        "clock_set_back_s": None,
        "variant_dir": variant,
        "started_at": datetime(2026, 11, 21, 11, 30, run % 60, tzinfo=UTC),
        "load_model": "open",
        "generator": "vegeta",
        "metadata_version": "5",
        "evidence": "raw",
        "duration_s": made.requests / rate,
        "warmup_rate": rate,
        "labels": {"pods": "10"},
        "generator_cpus": 2.0,
        "requests": made.requests,
        "expected_requests": made.requests,
        "complete": not excluded,
        "excluded": excluded,
        "exclusion_reason": text([_INCOMPLETE]) if excluded else None,
        "exclusions": [asdict(_INCOMPLETE)] if excluded else [],
        "tags": [],
        "problems": [],
        "source": f"demo/here/now/{rate:g}/{variant}/{run}.results.json.zst",
    }


def _cell(samples: list[dict[str, np.ndarray]], n_excluded: int) -> dict[str, Any]:
    latency = np.concatenate([sample["latency_ns"] for sample in samples])
    code = np.concatenate([sample["code"] for sample in samples])
    successful = latency[code == 200]
    means = [sample["latency_ns"].mean() for sample in samples]
    good = [sample["latency_ns"][sample["code"] == 200].mean() for sample in samples]
    shares = {
        name: [float((sample["code"] == code).mean()) for sample in samples]
        for name, code in (("http_503", 503), ("timeout", 0))
    }
    failed = [float((sample["code"] != 200).mean()) for sample in samples]
    cell: dict[str, Any] = {
        "stream": "main",
        "n_runs": len(samples),
        "n_excluded": n_excluded,
        "n_requests": len(latency),
        "mean_ns": latency.mean(),
        "run_mean_ns": np.mean(means),
        "run_std_ns": np.std(means),
        "ok_n_requests": len(successful),
        "ok_run_mean_ns": np.mean(good),
        "ok_run_std_ns": np.std(good),
        "error_fraction": np.mean(failed),
        "error_fraction_std": np.std(failed),
        "error_fractions": {name: float(np.mean(share)) for name, share in shares.items() if any(share)},
        "error_fraction_stds": {name: float(np.std(share)) for name, share in shares.items() if any(share)},
    }
    for name, quantile in PERCENTILES.items():
        value = float(np.quantile(latency, quantile))
        estimable = len(latency) * (1 - quantile) >= 10
        wide = estimable and len(samples) > 1
        cell |= {
            f"{name}_ns": value,
            f"{name}_low_ns": value * 0.93 if wide else None,
            f"{name}_high_ns": value * 1.09 if wide else None,
            f"{name}_estimable": estimable,
        }
    return cell | {f"ok_{name}_ns": float(np.quantile(successful, PERCENTILES[name])) for name in SHOWN_PERCENTILES}


def _write_requests(tables: Path, cell: Cell, key: dict[str, Any], samples: dict[int, dict[str, np.ndarray]]) -> None:
    parts = []
    for run, sample in samples.items():
        length = len(sample["seq"])
        constant = key | {"run": run, "variant_dir": cell.variant_dir, "stream": "main", "bytes_out": 0, "bytes_in": 10}
        columns = {name: pa.array([value] * length, _REQUESTS.field(name).type) for name, value in constant.items()}
        classes = np.select([sample["code"] == 503, sample["code"] == 0], ["http_503", "timeout"], "")
        columns |= {
            "seq": pa.array(sample["seq"], pa.int64()),
            "phase": pa.array(sample["phase"].tolist(), pa.string()),
            "sent_at": pa.array(sample["sent_ns"]).cast(pa.timestamp("ns")),
            "latency_ns": pa.array(sample["latency_ns"], pa.int64()),
            "code": pa.array(sample["code"], pa.int32()),
            "error": pa.array([""] * length, pa.string()),
            "offset_ns": pa.nulls(length, pa.int64()),
            "answered_by": pa.nulls(length, pa.string()),
            "generator": pa.nulls(length, pa.int32()),
            "error_class": pa.array([name or None for name in classes.tolist()], pa.string()),
        }
        parts.append(pa.table([columns[field.name] for field in _REQUESTS], schema=_REQUESTS))
    path = layout.cell_file(tables, "requests", cell)
    with layout.written(tables, path) as temporary:
        pq.write_table(pa.concat_tables(parts), temporary, compression="zstd")
