"""How many pods a variant had in its cluster, in words."""

from typing import Any

import pytest
from loadstone.archive import metadata
from loadstone.archive.run_records import RunRecord
from loadstone.report import measurement

PRESIDIO = {"namespace": "presidio", "restart": True}


def described(**cluster: Any) -> metadata.Metadata:
    """Metadata as a sweep writes them, resolved for the host."""
    workload = {"variant": "prose", "hostname": "moone", "test_replicas": 2}
    return metadata.parse({"version": "5", "workloadInfo": workload, "target": {"cluster": cluster}})


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"replicas": {"moone": 2, "*": 10}}, "2 of each deployment"),
        ({"deployments": ["a", "b"]}, "2 of each deployment"),
        ({"deployments": {"web": None, "redis": 1}}, "2 of each deployment, but redis 1"),
        ({"deployments": {"web": 3, "redis": 1}}, "web 3, redis 1"),
        ({"dependencies": {"presidio": PRESIDIO}}, "2 of each deployment, but presidio 1"),
        (
            {"dependencies": {"presidio": PRESIDIO | {"replicas": {"moone": 4, "*": 1}}, "db": {"replicas": 3}}},
            "2 of each deployment, but presidio 4, db 3",
        ),
        (
            {"dependencies": {"presidio": PRESIDIO | {"replicas": {"other": 1}}}},
            "2 of each deployment, but presidio not declared",
        ),
        ({"deployments": 7, "dependencies": ["x"]}, "2 of each deployment"),
    ],
)
def test_declared_numbers_are_those_of_this_host(cluster: dict[str, Any], expected: str) -> None:
    assert measurement.replicas_text([described(**cluster)]) == expected


def test_the_declaration_is_shown_with_them() -> None:
    prose = described(replicas={"moone": 2}, dependencies={"presidio": PRESIDIO | {"replicas": {"moone": 4}}})
    shown = measurement.cluster_declared(prose)
    assert shown["replicas"] == 2 and shown["dependencies"]["presidio"] == PRESIDIO | {"replicas": 4}
    assert "replicas" not in measurement.cluster_declared(described(replicas=5, deployments={"web": 3}))
    assert (
        measurement.cluster_declared(metadata.Metadata()) == {}
        and measurement.replicas_text([metadata.Metadata()]) == ""
    )


def test_what_was_seen() -> None:
    runs = [RunRecord(pods=(("presidio", 1), ("shop", count)), images=("app: shop:2",)) for count in (3, 2)]
    assert measurement.pods_recorded(runs) == {"pods": {"presidio": 1, "shop": "2 to 3"}, "images": ["app: shop:2"]}
    assert measurement.pods_recorded([RunRecord()]) == {}


def test_all_variants_are_told_together() -> None:
    ten = described(deployments={"web": None, "redis": 1})
    ten.replicas = 10
    one = described(dependencies={"presidio": PRESIDIO})
    assert measurement.replicas_text([one, ten, one]) == "2 or 10 of each deployment, but presidio 1, redis 1"
