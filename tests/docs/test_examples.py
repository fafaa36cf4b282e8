"""Every example of the documents works: YAML is valid, SQL runs, commands and links exist, every key is explained."""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import yaml
from conftest import PROJECT
from docs.conftest import Documented
from docs.documents import DOCUMENTS, Example, anchors, examples, prose, text
from loadstone import config
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.config import comparisons
from loadstone.config.catalogue import load_catalogue
from loadstone.config.yaml_files import SCHEMAS, read_yaml
from loadstone.importing import declaration
from support.checkout import Checkout

WORKFLOW = PROJECT / "docs/ci/github-actions.yml"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FOLDERS = {"archive": "a", "tables": "t", "reports": "r", "host": "moone"}
_LOADERS: dict[str, Callable[[Path], object]] = {
    "config/variants.yaml": config.load_variants,
    "config/catalogue.yaml": load_catalogue,
    "config/comparisons.yaml": comparisons.load,
    "config/imports.yaml": declaration.load_entries,
}


def _complete(found: dict[str, Any]) -> dict[str, Any]:
    """The configuration with what an example may leave out: folders, a sweep for its target, a target for its sweep."""
    complete = _FOLDERS | found
    if "target" in found and "sweep" not in found:
        variants = list(found["target"]["variants"])
        complete["sweep"] = {"app": "shop", "variants": variants, "rates": [10], "runs": 1, "duration": "1s"}
    if "sweep" in found and "target" not in found:
        variant = {"url": "http://127.0.0.1:9000/", "expect": {"status": 200, "body_contains": "x"}}
        complete["target"] = {"kind": "local", "variants": dict.fromkeys(found["sweep"]["variants"], variant)}
    return complete


@pytest.mark.parametrize("example", examples("yaml"), ids=str)
def test_a_yaml_example_is_valid(example: Example, tmp_path: Path) -> None:
    first, _, _ = example.text.partition("\n")
    assert first.startswith("# config/"), "the first line of an example names its file"
    file = tmp_path / Path(first[2:]).name
    file.write_text(example.text)
    if first[2:] in _LOADERS:
        assert _LOADERS[first[2:]](file)
        return
    assert first == "# config/config.yaml"
    checked = config.check(_complete(read_yaml(file)))
    if checked.get("target", {}).get("kind") == "kubernetes":
        Declared.of(checked["target"], "moone")


_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def _statistic(name: str, latencies_ns: np.ndarray) -> float:
    return float(np.quantile(latencies_ns, _SHARES[name]) if name in _SHARES else latencies_ns.mean())


def _expected(row: dict[str, Any], documented: Documented) -> dict[str, float]:
    """The latency figures that a row should have, by column, from the raw requests."""
    if row.keys().isdisjoint(_FIGURES):
        return {}
    own = documented.pooled(row["variant"], row["rate"])
    found = {name: _statistic(name, own) for name in (*_SHARES, "mean")}
    expected = {f"{name}_ns": value for name, value in found.items()}
    expected |= {f"{name}_ms": value / 1e6 for name, value in found.items()}
    expected["all_raw_data_mean_ns"] = found["mean"]
    expected["vegeta_summaries_mean_ns"] = float(np.mean(documented.reported[row["variant"], row["rate"]]))
    if (statistic := row.get("statistic")) in found:
        baseline = _statistic(statistic, documented.pooled("plain", row["rate"]))
        expected |= {"value": found[statistic], "ratio": found[statistic] / baseline}
    if "below" in row:
        expected["added_ms"] = (found["p99"] - _statistic("p99", documented.pooled(row["below"], row["rate"]))) / 1e6
    return {name: value for name, value in expected.items() if row.get(name) is not None}


_FIGURES = {
    "p50_ms",
    "p99_ms",
    "p99_ns",
    "all_raw_data_mean_ns",
    "vegeta_summaries_mean_ns",
    "added_ms",
    "value",
    "ratio",
}
# How many figures each of these documents' examples shows of the campaign: of its cells, of the mean and percentiles.
_WITH_FIGURES = {
    "README.md": 8,
    "docs/catalogue-and-comparisons.md": 14,
    "docs/gate.md": 16,
    "docs/statistics.md": 16,
    "docs/tables.md": 4,
}


def _rows(query: str, database: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    found = database.sql(query)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("example", examples("sql"), ids=str)
def test_an_sql_example_runs(example: Example, database: duckdb.DuckDBPyConnection) -> None:
    assert database.sql(example.text).columns


def _queries() -> Iterator[tuple[str, str]]:
    """Each SQL query of a document, with the name of the document."""
    yield from ((example.document, example.text) for example in examples("sql"))
    yield "README.md", *re.findall(r"'(SELECT [^']*)'", text(PROJECT / "README.md"))


def test_latencies_of_sql_examples_are_those_of_the_raw_requests(documented: Documented) -> None:
    """Of measured requests of valid runs, with the time limit for those that timed out."""
    counts: Counter[str] = Counter()
    for document, query in _queries():
        for row in _rows(query, documented.connection):
            expected = _expected(row, documented)
            assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-9), (document, row)
            counts[document] += len(expected)
    assert +counts == _WITH_FIGURES


def test_the_query_of_the_readme_gives_rows(database: duckdb.DuckDBPyConnection) -> None:
    (query,) = re.findall(r"'(SELECT [^']*)'", text(PROJECT / "README.md"))
    assert len(database.sql(query).fetchall()) == 4


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Every `snakemake` and `make` command of documents and of the workflow of CI: its program and its words."""
    steps = [step for job in yaml.safe_load(WORKFLOW.read_text())["jobs"].values() for step in job["steps"]]
    for shown in (*map(text, DOCUMENTS), *(step.get("run", "") for step in steps)):
        joined = shown.replace("\\\n", " ")
        for command in re.findall(r"(?:^|`|# )((?:snakemake|make) [^`#\n|]*)", joined, re.MULTILINE):
            program, *words = command.split()
            yield program, words


def test_commands_exist(pristine: Path, tmp_path: Path) -> None:
    """Every target of Snakemake and of make that a document names, and every profile."""
    checkout = Checkout(pristine, tmp_path / "checkout")
    rules = {line.split()[0] for line in checkout.run("--list-target-rules").splitlines() if line.strip()}
    every_rule = {line.split()[0] for line in checkout.run("--list-rules").splitlines() if line.strip()}
    made = set(re.findall(r"^([a-z0-9-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    options = {"--cores", "--forcerun", "--profile", "--config", "--report", "-n", "--container-image"}
    seen = set()
    for program, words in _commands():
        if program == "make":
            targets = [word for word in words if "=" not in word]
            assert set(targets) <= made, f"make {' '.join(words)}"
            continue
        targets = []
        for before, word in zip(["", *words], words, strict=False):
            if word.startswith("-") and before == "--set-resources":
                break
            if before == "--forcerun":
                assert word in every_rule, word
            if before == "--profile":
                assert (PROJECT / word / "profile.yaml").is_file() or word == "profiles/NAME", word
            if word in ("--config", "--report", "--container-image", "--set-resources", "`..."):
                break
            if not word.startswith(("-", "...")) and before not in options - {"-n"}:
                targets.append(word)
        assert set(targets) <= rules, f"snakemake {' '.join(words)}"
        seen |= set(targets)
    named = "open report import publish gate verify plan rights restore push pull bundle figures attacks tables"
    assert seen >= set(named.split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    for link in _LINK.findall(prose(document)):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def _keys(schema: Any) -> Iterator[str]:
    """The name of every key that a schema declares, at any depth."""
    if isinstance(schema, dict):
        if isinstance(properties := schema.get("properties"), dict):
            yield from properties
        for part in schema.values():
            yield from _keys(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _keys(part)


@pytest.mark.parametrize("name", ["config", "variants", "catalogue", "comparisons", "imports"])
def test_every_key_is_explained(name: str) -> None:
    """In backquotes outside of examples, alone or behind its section (`analysis.margin`)."""
    explained = set()
    for document in DOCUMENTS:
        for quoted in re.findall(r"`([^`\n]+)`", prose(document)):
            explained |= set(re.findall(r"\w+", quoted))
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    assert sorted(set(_keys(schema)) - explained) == []


@pytest.mark.skipif(not shutil.which("actionlint"), reason="actionlint is not installed")
def test_the_workflow_passes_actionlint() -> None:
    found = subprocess.run(["actionlint", str(WORKFLOW)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_every_document_of_the_reference_has_an_example_and_stands_in_the_index() -> None:
    index = text(PROJECT / "docs/README.md")
    with_examples = {example.document for example in examples("yaml", "sql", "sh", "python")}
    for document in (PROJECT / "docs").glob("*.md"):
        assert f"docs/{document.name}" in with_examples
        assert document.name == "README.md" or f"({document.name})" in index


def test_yaml_is_read_as_the_library_reads_it() -> None:
    """Anchors and merge keys included: a reader may use any YAML tool on an example."""
    for example in examples("yaml"):
        assert yaml.safe_load(example.text) is not None
