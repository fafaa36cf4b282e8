"""CPU and memory of pods through the real aggregation layer: there, absent, dying and back."""

import json
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import psutil
import pytest
from cluster.api import wait_until
from hypothesis import given
from hypothesis import strategies as st
from loadstone.archive.metadata import Metadata
from loadstone.collect.sampling import Sampler
from loadstone.collect.targets.base import UnsampledError
from loadstone.collect.targets.kubernetes.client import parse_quantity
from loadstone.collect.targets.kubernetes.monitoring import PodMetrics

ABSENT = "the cluster has no metrics API (metrics.k8s.io), so CPU and memory of its pods are unknown"
AWAY = "the metrics API does not respond, so CPU and memory of pods are unknown (status 503)"


def _at(second: int, *usages: tuple[str, str]) -> dict[str, Any]:
    usage = [{"cpu": cpu, "memory": memory} for cpu, memory in usages]
    return {"timestamp": f"2026-11-21T11:30:{second:02}Z", "containers": usage}


def _values(found: list[Any]) -> list[tuple[str, int, float | None, float | None]]:
    return [(each.name, each.sampled_at.second, each.cpu_millicores, each.memory_mib) for each in found]


def test_a_pod_is_sampled_once_per_measurement_of_the_cluster(metrics) -> None:
    sidecar = [("12345678n", "1Mi"), ("250m", "1536Ki")]

    def say(**pods: Any) -> None:
        metrics.metrics_file.write_text(json.dumps({name.replace("__", "/"): pod for name, pod in pods.items()}))

    asked = PodMetrics(None, ["shop", "mesh"])
    say(shop__a=_at(0, *sidecar), shop__b=_at(3, ("1", "1Gi")), mesh__d=_at(0, ("2u", "1e6")), other__x=_at(0))
    assert asked.sample() == []  # measured before the attack
    assert asked.sample() == []  # nothing new
    say(shop__a=_at(15, *sidecar), shop__b=_at(3, ("1", "1Gi")), mesh__d=_at(0, ("2u", "1e6")), other__x=_at(15))
    first = asked.sample()
    assert {each.scope for each in first} == {"pod"}
    assert first[0].sampled_at == datetime(2026, 11, 21, 11, 30, 15, tzinfo=UTC)
    # b is in the sum of its namespace although its own measurement is older.
    assert _values(first) == [("shop/a", 15, 262.345678, 2.5), ("shop/b", 3, 1000.0, 1024.0)]
    assert asked.sample() == []
    say(shop__a=_at(30, *sidecar), mesh__d=_at(16, ("2u", "1e6")))
    assert _values(asked.sample()) == [("shop/a", 30, 262.345678, 2.5), ("mesh/d", 16, 0.002, 1e6 / 2**20)]


def test_what_cannot_be_understood_is_left_out(metrics) -> None:
    asked = PodMetrics(None, ["shop"])

    def say(second: int) -> None:
        broken = {"timestamp": "yesterday", "containers": [{"cpu": "1", "memory": "1"}]}
        unknown = _at(second, ("1", "much"), ("1m", "1"))
        metrics.metrics_file.write_text(json.dumps({"shop/a": broken, "shop/b": unknown, "shop/c": _at(second)}))

    say(0)
    asked.sample()
    say(15)
    assert _values(asked.sample()) == [("shop/b", 15, 1001.0, None), ("shop/c", 15, None, None)]


def test_a_cluster_without_metrics(plane) -> None:
    asked = PodMetrics(None, ["shop", "mesh"])
    for _ in range(2):
        with pytest.raises(UnsampledError) as caught:
            asked.sample()
        assert (str(caught.value), caught.value.samples) == (ABSENT, [])


def test_metrics_that_die_during_the_attack_and_come_back(metrics) -> None:
    asked = PodMetrics(None, ["shop"])
    metrics.metrics_file.write_text(json.dumps({"shop/a": _at(0, ("1m", "1Mi"))}))
    assert asked.sample() == []
    metrics.kill_metrics()
    for _ in range(2):
        with pytest.raises(UnsampledError) as caught:
            asked.sample()
        assert str(caught.value) == AWAY
    metrics.start_metrics()
    metrics.metrics_file.write_text(json.dumps({"shop/a": _at(30, ("2m", "1Mi"))}))
    assert _values(asked.sample()) == [("shop/a", 30, 2.0, 1.0)]


def test_an_api_server_that_hangs_keeps_nobody_waiting(metrics) -> None:
    asked = PodMetrics(None, [f"namespace-{number}" for number in range(1000)])
    with metrics.api_frozen(), pytest.raises(UnsampledError, match=r"does not respond.*\(status 0\)"):
        asked.sample()


def test_one_namespace_that_may_not_be_read_hides_no_other(metrics, namespace, tmp_path, monkeypatch) -> None:
    mine, other = namespace("mine"), namespace("other")
    rules = [{"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["list"]}]
    monkeypatch.setenv("KUBECONFIG", str(mine.kubeconfig(tmp_path / "kubeconfig", rules)))
    asked = PodMetrics(None, [other.name, mine.name])
    for second in (0, 15):
        metrics.metrics_file.write_text(json.dumps({f"{mine.name}/a": _at(second, ("1m", "1Mi"))}))
        with pytest.raises(UnsampledError, match=f"the pods in {other.name} are unknown: .*forbidden") as caught:
            asked.sample()
    assert _values(list(caught.value.samples)) == [(f"{mine.name}/a", 15, 1.0, 1.0)]


def test_a_run_goes_on_without_metrics_and_takes_them_when_they_are_back(metrics, tmp_path) -> None:
    said: list[str] = []

    class Target:
        sample = PodMetrics(None, ["shop"]).sample

    class Job:
        target = {"kind": "kubernetes", "resources": {"every": "50ms"}}  # noqa: RUF012
        planned = Metadata(mode="serial", load_model="serial")
        log = said.append

    def measure(second: int) -> None:
        metrics.metrics_file.write_text(json.dumps({"shop/a": _at(second, ("1m", "1Mi"))}))

    def pods() -> list[int]:
        rows = (line.split(",") for line in (tmp_path / "samples").read_text().splitlines())
        return [datetime.fromisoformat(row[0]).second for row in rows if row[1:3] == ["pod", "shop/a"]]

    measure(0)
    sampler = Sampler(Job, tmp_path / "samples", 1.0)  # type: ignore[arg-type]
    with sampler.during(Target, [psutil.Process().pid]):  # type: ignore[arg-type]
        wait_until(lambda: sampler.record()["rounds"], "the first round")
        measure(15)
        wait_until(lambda: pods() == [15], "a sample")
        metrics.kill_metrics()
        wait_until(lambda: said, "the problem to be said")
        metrics.start_metrics()
        measure(30)
        wait_until(lambda: pods() == [15, 30], "another sample")
    assert said == [AWAY]
    assert [problem["text"] for problem in sampler.record()["problems"]] == [AWAY]
    assert sampler.compressed() is not None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("12345678n", Fraction(12345678, 10**9)),
        ("7u", Fraction(7, 10**6)),
        ("250m", Fraction(1, 4)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("2.", 2),
        ("-1", -1),
        ("3k", 3000),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_quantities(text: str, number: Fraction | int) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize("text", ["", "m", "1mi", "1e", "e3", "1,5", "1e9999", "9" * 5000, None])
def test_what_is_no_quantity(text: str | None) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_quantity(text)


@given(st.integers(0, 10**12))
def test_millicores_come_out_as_they_went_in(millicores: int) -> None:
    assert parse_quantity(f"{millicores}m") == Fraction(millicores, 1000)
