"""What set-up downloads is pinned by digest; licenses and the bill of materials cover all of it."""

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from license_expression import get_spdx_licensing
from referencing import Registry, Resource

sys.path.insert(0, str(Path(__file__).parents[2] / "envs"))
import components


def test_python_packages_are_pinned_by_digest(root: Path) -> None:
    packages = tomllib.loads((root / "uv.lock").read_text())["package"]
    distributions = [
        each for package in packages for each in [package.get("sdist"), *package.get("wheels", [])] if each
    ]
    assert len(distributions) > 500
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", each["hash"]) for each in distributions)
    local = {package["name"] for package in packages if "registry" not in package["source"]}
    assert local == {"loadstone", "snakemake-executor-plugin-kubernetes-shared"}


def test_go_modules_are_pinned_by_digest(root: Path) -> None:
    modules = list(root.glob("envs/tools/**/go.mod"))
    assert len(modules) == 2
    for file in modules:
        summed = set(
            re.findall(r"^(\S+ v[^/\s]+)(?:/go\.mod)? h1:\S{44}$", file.with_name("go.sum").read_text(), re.MULTILINE)
        )
        required = re.findall(r"^(?:require )?\s*(\S+\.\S+ v\S+)", file.read_text(), re.MULTILINE)
        assert required
        assert set(required) <= summed, file


def test_setup_downloads_nothing_without_a_digest(root: Path) -> None:
    text = (root / "envs/setup.sh").read_text()
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert [line for line in code.splitlines() if "pip install" in line and "--require-hashes" not in line] == []
    assert [line for line in code.splitlines() if "uv sync" in line and "--frozen" not in line] == []
    assert re.findall(r"\bnpm (?!ci\b|needs)\w+", code) == []
    assert "GOFLAGS=-mod=readonly" in code
    assert not re.search(r"\b(curl|wget|go install|uvx|npx)\b", code)
    version = re.search(r"^uv==([\d.]+)", (root / "envs/uv.txt").read_text(), re.MULTILINE)[1]
    assert f"uv_build>={version}," in (root / "pyproject.toml").read_text()


def test_another_file_than_the_pinned_one_is_not_installed(copy: Path, path_of: Callable[..., str]) -> None:
    pins = copy / "envs/uv.txt"
    pins.write_text(re.sub("sha256:[0-9a-f]{8}", "sha256:00000000", pins.read_text()))
    done = subprocess.run(["sh", "envs/setup.sh"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (copy / ".tools/uv/bin/uv").exists()


def test_every_component_has_a_license_that_exists(root: Path) -> None:
    spdx = get_spdx_licensing()
    found = components.components()
    assert len(found) > 700
    assert {"vega", "artillery", "@duckdb/duckdb-wasm", "go.k6.io/k6", "github.com/tsenart/vegeta/v12", "duckdb"} <= {
        each.name for each in found
    }
    expressions = {re.sub(r"LicenseRef-[\w-]+", "MIT", each.license) for each in found}
    assert {text: spdx.validate(text).errors for text in expressions if spdx.validate(text).errors} == {}


def test_licenses_are_those_that_installed_packages_state() -> None:
    listed = {each.name: each.license for each in components.components() if each.kind == "pypi"}
    stated = {
        re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): each.metadata.get("License-Expression")
        for each in importlib.metadata.distributions()
        if each.metadata.get("License-Expression")
    }
    compared = stated.keys() & listed.keys()
    assert len(compared) > 50
    assert {name: listed[name] for name in compared} == {name: stated[name] for name in compared}


def test_a_component_without_a_license_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert components.licenses() == 0
    known = components.components()
    unknown = components.Component("pypi", "made-up", "1", "")
    monkeypatch.setattr(components, "components", lambda: [*known, unknown])
    assert components.licenses() == 1
    assert "add to envs/licenses.yaml: pypi made-up" in capsys.readouterr().out


def test_no_javascript_of_others_is_in_the_repository(root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.js", "*.cjs", "*.mjs", "*.css", "*.woff*", "*.ttf"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout
    for name in listed.stdout.split():
        text = (root / name).read_text()
        assert not re.search(r"@license|Copyright|sourceMappingURL", text), name
        assert max(map(len, text.splitlines())) < 1000, f"{name} is minified"


def test_the_bill_of_materials_is_valid_and_the_same_each_time() -> None:
    bill = components.bill_of_materials()
    folder = files("cyclonedx.schema") / "_res"
    schemas = {
        name: json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text())
        for name in ("bom-1.5", "spdx", "jsf-0.82")
    }
    registry = Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in schemas.values())
    faults = [fault.message[:200] for fault in Draft7Validator(schemas["bom-1.5"], registry=registry).iter_errors(bill)]
    assert faults == []
    names = {entry["purl"] for entry in bill["components"]}
    assert "pkg:golang/go.k6.io/k6@v1.8.1" in names
    assert any(name.startswith("pkg:pypi/snakemake@") for name in names)
    assert not any(name.startswith("pkg:pypi/pytest@") for name in names)
    assert bill == components.bill_of_materials()
