"""How single runs behaved, excluded ones too: tables `run_figures`, `run_shapes`, `sending` and `senders`.

In: facts of runs and their requests, which are read once. Out: for each run its figures, the shape of its latency over
time, its send lag, and whether its load generators were synchronised.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import stats
from loadstone.analysis import Row, by_key, distributions, run_requests
from loadstone.analysis.distributions import SHARES
from loadstone.analysis.run_requests import NO_GENERATOR, Pool, RunRequests, Source
from loadstone.percentiles import title
from loadstone.readers import load_generators
from loadstone.stats import Latencies, estimable, run_shape
from loadstone.stats.latencies import send_lags, sum_of
from loadstone.text import listed, ms, percent, rate_text, rounded, three

_Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RunBehaviour:
    """A run's rows of `run_shapes` (None without single requests), `sending` and `senders` (empty for one generator).

    `figures` are those of `distributions.of_run`, empty without single requests. `out_of_sync` is a text where several
    generators were not synchronised.
    """

    figures: Row
    shape: Row | None
    sending: Row
    senders: list[Row]
    out_of_sync: str | None


@dataclass(frozen=True)
class _Lags:
    """Requests of one of a run's generators: numbers, send lags, latencies since they were due; see `send_lags`."""

    generator: int
    zero_ns: int
    seq: _Integers
    lags_ns: _Integers
    corrected_ns: _Integers


def find(source: Source, facts: Sequence[Row], lag_limit: Mapping[str, float]) -> list[RunBehaviour]:
    """The behaviour of each of the runs `facts`; adds `clock_set_back_s` to each fact.

    `lag_limit` holds fields of `LagLimit`.
    """
    limit, found = LagLimit(**lag_limit), []
    for fact, rows in zip(facts, source.of_cells(facts, partial(_of_cells, source), _depends_on), strict=True):
        parts = by_key(rows, lambda row: row.pop("part"))
        figures, shape, lag = (next(iter(parts[part]), {}) for part in ("figures", "shape", "lag"))
        fact["clock_set_back_s"] = figures.get("clock_set_back_s")
        key = run_requests.key(fact)
        sending = key | {"requests": figures.get("n_requests")} | _sending(fact, lag, figures, limit)
        senders = [] if fact["clock_set_back_s"] else _senders(fact, parts["sender"])
        out_of_sync = out_of_sync_text(senders, limit.apart_ns)
        found.append(RunBehaviour(figures, key | shape if shape else None, sending, senders, out_of_sync))
    return found


def _of_cells(source: Source, pools: Sequence[Pool], files: list[str]) -> Iterator[tuple[int, Row]]:
    for pool, position, requests in source.requests(
        pools, files, with_excluded=True, also=distributions.REQUEST_COLUMNS
    ):
        figures = distributions.of_run(requests)
        run = pools[pool].runs[position] | {"clock_set_back_s": figures["clock_set_back_s"]}
        rows = [{"part": "figures"} | figures, {"part": "shape"} | _shape(run, requests)]
        several, is_scheduled = (run["generators"] or 1) > 1, _refusal(run) is None
        lags = [*_by_generator(run, requests)] if several or is_scheduled else []
        if lags and is_scheduled:
            rows.append({"part": "lag"} | _lag(run, requests, lags))
        if several:
            rows += [{"part": "sender"} | _sender(each) for each in lags if each.generator != NO_GENERATOR]
        for row in rows:
            yield pool, {"series": position} | row


def _depends_on(pool: Pool) -> object:
    names = ("resolution_ns", "load_model", "generator", "generators")
    runs = [(*(run[name] for name in names), _refusal(run | {"clock_set_back_s": None})) for run in pool.runs]
    return distributions.CODE, Path(__file__).read_text("utf-8"), _identity(pool.runs[0]), runs


# --- shape -----------------------------------------------------------------------------------------------------------


def _shape(run: Row, requests: RunRequests) -> Row:
    sent_ns, order = requests.sent_ns, np.arange(requests.seq.size)
    if sent_ns is not None and not run["clock_set_back_s"]:
        order = np.argsort(sent_ns, kind="stable")
        sent_ns = sent_ns[order]
    else:
        sent_ns = None
    latencies_ns, seed = requests.latency_ns[order], stats.seed(*_identity(run), run["run"])
    return _shape_row(run_shape.classify(latencies_ns, run["resolution_ns"], seed), requests.seq[order], sent_ns)


def _identity(run: Row) -> tuple[Any, ...]:
    """Identifies the run's cell."""
    return tuple(run[name] for name in ("app", "host", "timestamp", "rate", "variant_dir"))


def unsettled_text(row: Row) -> str | None:
    """Why the mean of a run is not that of a steady state; None where it is."""
    if row["shape"] not in run_shape.UNSETTLED:
        return None
    if row["shape"] == run_shape.CHANGING_LEVEL:
        levels = ", ".join(three(level_ns / 1e6) for level_ns in row["levels_ns"])
        text = f"level changes at request {listed(f'{seq:,}' for seq in row['change_seqs'])} ({levels} ms)"
    elif row["shape"] == run_shape.WARMING_UP:
        text = f"slow start increases its mean latency by {percent(row['warmup_share'])}"
    elif row["shape"] == run_shape.UNEVEN:
        return f"is {row['shape']}: {halves(row['half_ratio'])}"
    else:
        text = f"latency changes by {percent(row['change_share'], '+')} over the run"
    return f"is {row['shape']}: its {text}; {halves(row['half_ratio'])}"


def halves(ratio: float) -> str:
    """The ratio of the mean latencies of a run's halves, the longer one named first."""
    longer, shorter, times = ("first", "second", ratio) if ratio >= 1 else ("second", "first", 1 / max(ratio, 1e-9))
    return f"its {longer} half took {three(times)} times as long as its {shorter} (mean latency)"


def _shape_row(found: run_shape.RunShape, seq: _Integers, sent_ns: _Integers | None) -> Row:
    """A row of `run_shapes`, with durations where times are known."""
    row = asdict(found) | {
        "requests": seq.size,
        "shapes": list(found.shapes),
        "change_seqs": [int(seq[change]) for change in found.change_seqs],
        "levels_ns": list(found.levels_ns),
        "warmup_s": None,
        "period_s": None,
    }
    if sent_ns is not None:
        if found.warmup_requests is not None:
            row["warmup_s"] = float(sent_ns[found.warmup_requests] - sent_ns[0]) / 1e9
        if found.period_requests is not None:
            row["period_s"] = found.period_requests * float(sent_ns[-1] - sent_ns[0]) / 1e9 / (seq.size - 1)
    return row


# --- send lag --------------------------------------------------------------------------------------------------------

_NO_RATE = 1e-9  # a schedule of centuries
# Requests that are sent faster than planned, not only to catch up, have no known due time.
_TOO_FAST = 1.01
# A run is judged by the highest percentile that its requests support.
JUDGED = {"p99": 0.99, "p90": 0.9, "p50": 0.5}
_OBSERVED = JUDGED | {"p999": 0.999}  # latencies as measured, beside those since requests were due
# Remedies by the code of the reason, where another load generator would not help.
_LONGER = "measure for longer, so that there are several requests"
REMEDIES = {
    "clock_set_back": "measure on a machine whose clock is not set back: have its time service slew it, not step it",
    "one_request": _LONGER,
    "no_request": _LONGER,
}
_FEWEST = 2  # requests: fewer have no rate
# A clock as coarse as this doesn't show a lag near the limit.
_COARSE_NS = 1e6


@dataclass(frozen=True)
class LagLimit:
    """A run is limited by its generator when the 99th percentile of its send lag is above `time_ns` and `share`.

    `share` is of the run's own median latency. With too few requests for the 99th percentile, the highest of
    `JUDGED` that they support is judged, if any. A lag below `time_ns` is due to the load generator's timer:
    ``vegeta attack`` waits in steps of 1 ms on Linux (golang/go#53824), so it sends up to 1.1 ms late on an idle
    machine. A lag below `share` does not visibly change any figure of the run. `apart_ns` is how far apart the clocks
    or starts of several generators may be.
    """

    time_ns: float = 2e6
    share: float = 0.1
    apart_ns: float = 10e6

    def of(self, median_ns: float) -> float:
        return max(self.time_ns, self.share * median_ns)


def _by_generator(run: Row, requests: RunRequests) -> Iterator[_Lags]:
    """The send lags of each generator's requests with a time of day."""
    if run["rate"] <= _NO_RATE:
        return
    for generator, own in requests.by_generator():
        seq, latencies_ns = requests.seq[own], requests.latency_ns[own]
        zero_ns, lags_ns = send_lags(seq, requests.times_ns[own], _interval_ns(run))
        yield _Lags(generator, zero_ns, seq, lags_ns, sum_of(latencies_ns, lags_ns))


def _interval_ns(run: Row) -> int:
    """Whole nanoseconds, as in vegeta's ConstantPacer (v12.13.0)."""
    interval_ns: int = math.floor(1e9 / run["rate"])
    return interval_ns


def _lag(run: Row, requests: RunRequests, parts: Sequence[_Lags]) -> Row:
    """How late requests were sent, and their latency since they were due.

    ``achieved_rate`` is since the first request was due, ``least_rate`` the smaller one of the two halves of the
    requests, each since its first request was sent; None without a time between them. ``lag_max_seq`` is the first
    request with the maximum lag, ``lag_max_due_s`` when it was due.
    """
    places = [int(np.argmax(each.lags_ns)) for each in parts]
    latest = [(int(each.lags_ns[place]), -int(each.seq[place])) for each, place in zip(parts, places, strict=True)]
    lag_max_ns, less_seq = max(latest)
    lags = Latencies(np.sort(np.concatenate([each.lags_ns for each in parts])), 0, None)
    since_due = Latencies(np.sort(np.concatenate([each.corrected_ns for each in parts])), 0, None)
    seq, sent_ns = requests.seq[requests.dated], requests.times_ns[requests.dated]
    first, last, middle = int(seq[0]), int(seq[-1]), (int(seq[0]) + int(seq[-1])) // 2
    start_ns, end_ns = int(sent_ns.min()), int(sent_ns.max())
    due_from_ns = min(each.zero_ns for each in parts) + first * _interval_ns(run)
    halves = [
        _rate(middle - first, int(sent_ns[seq <= middle].max()) - start_ns),
        _rate(last - middle, end_ns - int(sent_ns[seq >= middle].min())),
    ]
    return {
        "achieved_rate": _rate(last - first, end_ns - due_from_ns),
        "least_rate": min((rate for rate in halves if rate is not None), default=None),
        **_at(lags, "lag", JUDGED),
        "lag_max_ns": float(lag_max_ns),
        "lag_max_seq": -less_seq,
        "lag_max_due_s": -less_seq * _interval_ns(run) / 1e9,
        "corrected_mean_ns": since_due.mean(),
        **_at(since_due, "corrected", _OBSERVED),
    }


def _at(latencies: Latencies, name: str, shares: Mapping[str, float]) -> Row:
    values = latencies.quantiles([*shares.values()])
    return {f"{name}_{percentile}_ns": value for percentile, value in zip(shares, values, strict=True)}


def _rate(requests: int, duration_ns: int) -> float | None:
    return requests * 1e9 / duration_ns if duration_ns else None


def _sending(fact: Row, found: Row, figures: Row, limit: LagLimit) -> Row:
    """Columns of `sending`."""
    requests = figures.get("n_requests", 0)
    reason = _refusal(fact) or _refusal_by_requests(fact, found, requests)
    if reason:
        return dict(zip(("refused_code", "refused"), reason, strict=True))
    by_share = dict(zip(SHARES, figures["latencies_ns"], strict=True))
    observed = {f"observed_{name}_ns": by_share[share] for name, share in _OBSERVED.items()}
    limit_ns = limit.of(observed["observed_p50_ns"])
    supported = next((name for name, share in JUDGED.items() if estimable(requests, share)), None)
    own = {name: value for name, value in found.items() if name != "least_rate"}
    return (
        own
        | observed
        | {
            "observed_mean_ns": figures["mean_ns"],
            "asked_rate": fact["rate"],
            "lag_limit_ns": limit_ns,
            "judged_by": supported,
            "judged_lag_ns": found[f"lag_{supported}_ns"] if supported else None,
            "limited": found[f"lag_{supported}_ns"] > limit_ns if supported else None,
        }
    )


def _refusal(fact: Row) -> tuple[str, str] | None:
    """Why the send lag of a run has no meaning or is unknown: code and text."""
    generator, resolution_ns = fact["generator"], fact["resolution_ns"] or 0
    reason = None
    if fact["load_model"] != "open":
        reason = _NEVER_DUE.get(fact["load_model"], ("unknown_load_model", "its load model is unknown"))
    elif not fact["requests_file"]:
        reason = "reports_only", "single requests were not recorded"
    elif not load_generators.is_timed(generator):
        reason = "untimed", f"{generator} records in which period a request was answered, not when it was sent"
    elif not load_generators.is_paced(generator):
        reason = "unpaced", f"{generator or 'the load generator'} does not record when each request was scheduled"
    elif fact["clock_set_back_s"]:
        reason = "clock_set_back", set_back(fact["clock_set_back_s"])
    elif resolution_ns >= _COARSE_NS:
        reason = "coarse_clock", f"its times come in steps of {resolution_ns / 1e6:g} ms, too coarse to show it"
    return reason


_NEVER_DUE = {
    "serial": ("serial", "serial load: each request waits for the previous response, so none has a scheduled time"),
    "closed": ("closed", "closed load: users wait for each response, so no request has a scheduled time"),
}


def _refusal_by_requests(fact: Row, found: Row, requests: int) -> tuple[str, str] | None:
    if requests < _FEWEST:
        if requests:
            return "one_request", "a single measured request has no rate"
        return "no_request", "there is no measured request"
    if found.get("achieved_rate") is None:
        return "no_times", "when its requests were sent is not recorded"
    if (found["least_rate"] or 0) > _TOO_FAST * fact["rate"]:
        text = (
            f"its requests were sent at {rounded(found['least_rate'], 4)} per second or more, but the rate is "
            f"{rate_text(fact['rate'])}, so the schedule is unknown"
        )
        return "too_fast", text
    return None


def set_back(seconds: float) -> str:
    """Says that the clock was set back during a run."""
    return f"the clock was set back by {seconds:,.0f} s during the run, so it is unknown when its requests were sent"


def late_text(row: Mapping[str, Any]) -> str | None:
    """Says that the load generator fell behind in a run; None where it did not."""
    if not row.get("limited"):
        return None
    return (
        f"its requests were sent late: the {title(row['judged_by']).lower()} of the send lag is "
        f"{ms(row['judged_lag_ns'])}, the limit {ms(row['lag_limit_ns'])}; {rounded(row['achieved_rate'], 4)} of "
        f"{rate_text(row['asked_rate'])} requests/s were sent, and the 99th percentile of latency, "
        f"{ms(row['observed_p99_ns'])}, is {ms(row['corrected_p99_ns'])} from when requests were due"
    )


# --- several generators ----------------------------------------------------------------------------------------------

_CLOCK = ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")


def _sender(part: _Lags) -> Row:
    """How late one of several generators sent its requests, by its own clock."""
    lags = Latencies(np.sort(part.lags_ns), 0, None)
    figures = _at(lags, "lag", {"p50": 0.5, "p99": 0.99}) | {"lag_max_ns": float(lags.ordered_ns[-1])}
    return {"generator": part.generator, "requests": lags.size, "zero_ns": part.zero_ns} | figures


def _senders(fact: Row, found: Sequence[Row]) -> list[Row]:
    """Starts are converted to the collecting machine's clock by each generator's clock offset."""
    recorded = {each["generator"]: each for each in fact["senders"] or []}
    starts = [row["zero_ns"] - (recorded.get(row["generator"], {}).get("clock_offset_ns") or 0) for row in found]
    rows = []
    for row, start_ns in zip(found, starts, strict=True):
        sender = recorded.get(row["generator"], {})
        rows.append(
            run_requests.key(fact)
            | {name: value for name, value in row.items() if name != "zero_ns"}
            | {"start_lag_ns": float(start_ns - min(starts))}
            | {name: sender.get(name) for name in ("process", "place", *_CLOCK)}
        )
    return rows


def offsets_ns(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The largest possible difference of the clocks of a run's generators, and of their starts (ns).

    Both include the uncertainties and drifts of two clocks.
    """
    starts = max((row["start_lag_ns"] for row in rows), default=0.0)
    known = [row for row in rows if row["clock_offset_ns"] is not None]
    if len(known) < 2:
        return 0.0, starts
    errors = sorted((row["clock_uncertainty_ns"] or 0) + abs(row["clock_drift_ns"] or 0) for row in known)
    offsets = [row["clock_offset_ns"] for row in known]
    return float(max(offsets) - min(offsets) + sum(errors[-2:])), starts + sum(errors[-2:])


def out_of_sync_text(rows: Sequence[Mapping[str, Any]], limit_ns: float) -> str | None:
    """Says that the generators of a run were not synchronised; None where they were."""
    offsets = zip(("clocks", "starts"), offsets_ns(rows), strict=True)
    texts = [f"their {what} by up to {ms(offset_ns)}" for what, offset_ns in offsets if offset_ns > limit_ns]
    if not texts:
        return None
    return f"its {len(rows)} generators were not synchronised: {' and '.join(texts)}, the limit is {ms(limit_ns)}"
