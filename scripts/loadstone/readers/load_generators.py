"""Load generators: what the latency of each means, by which clock, how finely. Table `generators`.

Figures of two of them may be compared only with these differences stated: a response that takes long
to arrive costs vegeta, hey and k6 all of its time, Artillery none of it; a new connection costs vegeta and hey, but
neither k6 nor Artillery.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Generator:
    """One tool as it measures by default. `source` says how that is known.

    `starts_at` and `ends_at` bound its latency; `connecting`: whether that holds what a new connection costs.
    `stamp` is what its time of a request marks, ``start`` or ``end`` (readers always give the start), ``offset`` when
    it counts from the start of the run, or ``none``. Latencies come in whole `resolution_ns`.
    """

    generator: str
    load_models: tuple[str, ...]
    starts_at: str
    ends_at: str
    connecting: str
    stamp: str
    resolution_ns: float | None
    source: str


_GO = "a worker is about to build the request and to hand it to Go's HTTP client"
_BODY = "the last byte of the body has been read"

GENERATORS = {
    each.generator: each
    for each in (
        Generator(
            "vegeta",
            ("open",),
            _GO,
            _BODY,
            "included: name look-up, TCP and TLS of a new connection",
            "start",
            1,
            "source of v12.13.0: lib/attack.go, Attacker.hit (time.Since of the timestamp, after io.ReadAll)",
        ),
        Generator(
            "serial",
            ("serial",),
            _GO,
            _BODY,
            "included: name look-up, TCP and TLS of a new connection",
            "start",
            1,
            "source: envs/tools/serial/main.go, which sends through vegeta's own Attacker.hit. Up to version 4 of the "
            "metadata: the predecessor's collector, which stamped the end",
        ),
        Generator(
            "k6",
            ("open", "closed"),
            "a connection is there and the first byte of the request is being sent",
            f"{_BODY}; each redirect that is followed is a request of its own",
            "not included: http_req_duration is sending + waiting + receiving",
            "end",
            1,
            "source of v1.8.1: lib/netext/httpext/tracer.go, Tracer.Done and Trail.SaveSamples; "
            "https://grafana.com/docs/k6/latest/using-k6/metrics/reference/",
        ),
        Generator(
            "artillery",
            ("open",),
            "the request has been sent",
            "the first byte of the response has come",
            "not included",
            "none",
            1e6,
            "source of 1.7.6 and 2.0.34: core/lib/engine_http.js (res.timings.phases.firstByte of got, which takes its "
            "times from Date.now, in ms)",
        ),
        Generator(
            "hey",
            ("closed",),
            _GO,
            _BODY,
            "included: name look-up, TCP and TLS of a new connection",
            "offset",
            1e5,
            "source: requester/requester.go, Work.makeRequest, and its CSV (%4.4f seconds), in which requests without "
            "a response have no line",
        ),
        Generator(
            "ab",
            ("closed",),
            "a connection is about to be opened; of one kept alive (-k), the request is about to be written",
            _BODY,
            "included: TCP and TLS of a new connection; the name is looked up once, before the first request",
            "start",
            1e6,
            "source of httpd: support/ab.c, write_request, close_connection and output_results (ap_round_ms; the start "
            "is written in whole seconds)",
        ),
    )
}


def load_models(generator: str | None) -> tuple[str, ...]:
    """Those that a tool knows; empty for an unknown tool."""
    found = GENERATORS.get(generator or "")
    return found.load_models if found else ()


def only_load_model(generator: str | None) -> str | None:
    """The load model of a tool that knows but one; else None."""
    known = load_models(generator)
    return known[0] if len(known) == 1 else None


def meaning(generator: str | None) -> tuple[Any, ...]:
    """What a tool's latency means; equal for tools that measure alike, and for none other."""
    found = GENERATORS.get(generator or "")
    if found is None:
        return (generator,)
    return found.starts_at, found.ends_at, found.connecting, found.resolution_ns


def resolution_ns(generator: str | None) -> float | None:
    """The unit in whole multiples of which a tool's latencies come; None where that is not known."""
    found = GENERATORS.get(generator or "")
    return found.resolution_ns if found else None


def is_timed(generator: str | None) -> bool:
    """Whether it is known when a request was sent; of an unknown tool it may be."""
    found = GENERATORS.get(generator or "")
    return found is None or found.stamp != "none"


def is_paced(generator: str | None) -> bool:
    """Whether request number n of an open load is due at n / rate, so that the lag of its sending is known."""
    return generator == "vegeta"


def rows() -> Iterator[dict[str, Any]]:
    """Rows of table `generators`."""
    for each in GENERATORS.values():
        yield asdict(each) | {"load_models": list(each.load_models)}
