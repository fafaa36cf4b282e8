"""The README's example of an own sweep works as it is printed, on other ports."""

import json
import re
from pathlib import Path

import pytest
from conftest import PROJECT
from support.checkout import Checkout


@pytest.fixture
def example() -> str:
    return re.search(r"```yaml\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)[1]


def test_the_example_runs(example: str, pristine: Path, tmp_path: Path) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout")
    ours = re.search(r"port_value: (\d+)", (checkout.path / "config/demo/envoy.yaml").read_text())[1]
    upstream = re.findall(r"port_value: (\d+)", (checkout.path / "config/demo/envoy.yaml").read_text())[-1]
    text = example.replace("18081", ours).replace("18080", upstream)
    text = text.replace("rates: [100], runs: 5, duration: 10s", "rates: [2], runs: 3, duration: 1s")
    (checkout.path / "config/config.yaml").write_text(text)
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 6
    for summary in checkout.archive.rglob("*.summary.json"):
        assert json.loads(summary.read_text())["status_codes"] == {"200": 2}
