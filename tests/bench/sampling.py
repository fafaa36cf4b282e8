"""Whether sampling CPU and memory disturbs an attack: the same run with and without, taking turns."""

import statistics
import tempfile
from pathlib import Path

from loadstone.analysis.campaign import analyse_campaign
from loadstone.archive import Campaign, Cell
from loadstone.collect import sweep
from loadstone.collect.run import collect_run
from loadstone.config import check
from loadstone.config.yaml_files import read_yaml
from loadstone.tables.convert import convert_campaign
from loadstone.tables.database import connect

PAIRS = 6


def measure() -> dict[str, float]:
    """Medians over runs of 3 s at 1,000 requests/s against a real Envoy: p99 of the send lag and of the latency, ms."""
    with tempfile.TemporaryDirectory() as folder:
        declared = read_yaml(Path("config/config.yaml"))
        declared |= {"archive": f"{folder}/archive", "tables": f"{folder}/tables", "reports": f"{folder}/reports"}
        declared["sweep"] |= {"variants": ["plain"], "rates": [1000], "runs": 2 * PAIRS, "duration": "3s"}
        config = check(declared)
        campaign: Campaign = sweep.open_sweep(config, {}, lambda _: None)
        for run in range(1, 2 * PAIRS + 1):
            target = config["target"] | {"resources": {"every": "1s" if run % 2 else "0s"}}
            cell = Cell(campaign, "1000", "plain")
            collect_run(cell, run, target, host=config["host"], logs=Path(folder), log=lambda _: None)
        tables = Path(config["tables"])
        convert_campaign(campaign, tables, lambda _, variant: variant, 1, lambda _: None)
        analyse_campaign(campaign, tables)
        with connect(tables, [campaign]) as database:
            lags = database.sql("SELECT run, send_lag_p99_ns / 1e6 FROM runs").fetchall()
            p99s = database.sql(
                "SELECT run, quantile_cont(latency_ns, 0.99) / 1e6 FROM requests WHERE phase = 'test' GROUP BY run"
            ).fetchall()
    found = {}
    for name, values in (("lag", lags), ("latency", p99s)):
        for turn, sampled in enumerate(("without", "with")):
            found[f"{name}_{sampled}_ms"] = statistics.median(value for run, value in values if run % 2 == turn)
    return found
