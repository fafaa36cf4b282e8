"""A sweep of a real cluster whose pods are measured, and one of whose containers runs out of memory meanwhile."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from cluster.control_plane import ControlPlane
from cluster.shop import Gateway, Shop, gateway, shop_sweep


@contextmanager
def eventful(plane: ControlPlane, shop: Shop, served: Gateway) -> Iterator[None]:
    """Metrics of all pods every 0.2 s; once load arrives, a container is killed for lack of memory."""
    done, space = threading.Event(), shop.spaces["plain"]

    def work() -> None:
        killed, measured_at = False, datetime.now(UTC)
        while not done.wait(0.2):
            measured_at += timedelta(seconds=15)
            usage = {
                "timestamp": measured_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "containers": [{"cpu": "5m", "memory": "8Mi"}],
            }
            pods = [f"{space.name}/{pod['metadata']['name']}" for pod in space.pods("front")]
            beside = plane.metrics_file.with_suffix(".new")
            beside.write_text(json.dumps(dict.fromkeys(pods, usage)))
            beside.replace(plane.metrics_file)
            if not killed and len(served.asked) > 40:
                killed = True
                pod = space.pods("front")[0]
                (status,) = pod["status"]["containerStatuses"]
                last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
                changed = {"containerStatuses": [status | {"restartCount": 1, "lastState": last}]}
                space.api.patch("Pod", space.name, pod["metadata"]["name"], {"status": changed}, "status")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_use_and_incidents_of_pods_are_in_the_run_the_tables_and_the_report(
    metrics: ControlPlane, pristine: Path, tmp_path: Path
) -> None:
    shop = Shop(metrics)
    with gateway() as served:
        checkout = shop_sweep(
            pristine, tmp_path / "checkout", shop, served.url, variants=["plain"], rates=[50], runs=1, duration="4s"
        )
        checkout.configure(target={"resources": {"every": "300ms"}})
        checkout.run("--cores", "1", "open")
        with eventful(metrics, shop, served):
            checkout.run("--cores", "all")

    (record,) = (json.loads(file.read_text()) for file in checkout.archive.rglob("*.run.json"))
    (incident,) = (each for each in record["incidents"] if each["kind"] == "oom")
    assert incident["object"].startswith(f"{shop.name('plain')}/front-")
    assert record["sampling"]["problems"] == []
    with duckdb.connect(str(checkout.path / "results/loadstone.duckdb"), read_only=True) as database:
        database.execute("SET file_search_path = ?", [str(checkout.path)])
        usage = "SELECT cpu_max_millicores, memory_max_mib, parts_max FROM resource_usage WHERE scope = 'namespace'"
        ((cpu, memory, pods),) = database.sql(usage).fetchall()
        assert pods == len(record["cluster"]["pods"]) // 2  # the other half are of a deployment without metrics
        assert (cpu, memory) == (5 * pods, 8 * pods)
        ((problems,),) = database.sql("SELECT problems FROM runs").fetchall()
        assert any("containers killed for lack of memory: 1" in problem for problem in problems)
        assert database.sql("SELECT tag FROM suggestions WHERE kind = 'target problem'").fetchall() == [("doubtful",)]
    (page,) = (checkout.path / "reports/campaigns").glob("*.html")
    assert "Resource usage" in page.read_text()
    assert shop.name("plain") in page.read_text()
    assert ">Incidents<" in page.read_text()
    assert "<strong>containers killed for lack of memory: 1</strong>" in page.read_text()
    assert "valid; tag doubtful is suggested" in page.read_text()
