"""One version of everything: the lock, the conda environments and the Go module agree with what uses them."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

# What conda-forge, or the import, calls differently from PyPI.
CONDA_NAMES = {"duckdb": "python-duckdb", "kubernetes": "python-kubernetes"}
IMPORT_NAMES = {"markdown_it": "markdown-it-py", "yaml": "pyyaml", "vl_convert": "vl-convert-python"}
# Comes with a package that is named.
BROUGHT_BY = {"numpy": "scipy", "markupsafe": "jinja2", "urllib3": "kubernetes"}

ENVIRONMENTS = ("collect", "pipeline", "report")


def locked(root: Path) -> dict[str, str]:
    lock = tomllib.loads((root / "uv.lock").read_text())
    return {package["name"]: package["version"] for package in lock["package"]}


def pins(root: Path, environment: str) -> dict[str, str]:
    content = yaml.safe_load((root / "envs" / f"{environment}.yaml").read_text())
    return dict(re.fullmatch(r"([\w-]+) =([\w.]+)", line).groups() for line in content["dependencies"])


def test_lock_fits_the_project(root: Path) -> None:
    result = subprocess.run(
        [".tools/uv/bin/uv", "lock", "--check", "--offline", "--python", sys.executable],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_lock_names_only_pypi(root: Path) -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (root / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


@pytest.mark.parametrize("folder", ["artillery", "duckdb-wasm"])
def test_what_npm_installs_and_all_it_needs_are_pinned_by_content(root: Path, folder: str) -> None:
    declared = json.loads((root / "envs/tools" / folder / "package.json").read_text())["dependencies"]
    lock = json.loads((root / "envs/tools" / folder / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert {name: packages[f"node_modules/{name}"]["version"] for name in declared} == declared
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    # From whichever registry npm is told of.
    assert not any("resolved" in each for each in packages.values())


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_conda_pins_equal_the_lock(root: Path, environment: str) -> None:
    versions = {CONDA_NAMES.get(name, name): version for name, version in locked(root).items()}
    for name, version in pins(root, environment).items():
        if name != "python":
            assert version == versions[name], name


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_conda_environment_has_what_its_scripts_import(root: Path, environment: str) -> None:
    scripts = scripts_run_in(root, environment)
    if not scripts:
        pytest.skip(f"no rule runs in envs/{environment}.yaml yet")
    packages = set(locked(root))
    modules = {name for script in scripts for name in third_party(root, script)} - {"snakemake"}  # a global of theirs
    imported = {IMPORT_NAMES.get(name, name) for name in modules}
    assert imported <= packages
    needed = {BROUGHT_BY.get(name, name) for name in imported}
    assert {CONDA_NAMES.get(name, name) for name in needed} <= set(pins(root, environment))


def scripts_run_in(root: Path, environment: str) -> set[Path]:
    """The scripts of all rules with `conda: "../envs/<environment>.yaml"`."""
    found = set()
    for file in (root / "rules").glob("*.smk"):
        for rule in re.split(r"^rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            if re.search(rf'"\.\./envs/{environment}\.yaml"', rule):
                found |= {root / "scripts" / name for name in re.findall(r'"\.\./scripts/([\w.]+)"', rule)}
    return found


def third_party(root: Path, script: Path) -> set[str]:
    """Top-level names of all packages that a script imports, itself or through the library."""
    seen: set[Path] = set()
    names: set[str] = set()
    waiting = [script]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for module in imports(file):
            top = module.split(".")[0]
            if top == "loadstone":
                waiting += library_files(root / "scripts", module)
            elif top not in sys.stdlib_module_names:
                names.add(top)
    return names


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def library_files(scripts: Path, module: str) -> list[Path]:
    """The files that importing a module of the library runs: its own and those of the packages around it."""
    parts = module.split(".")
    folders = [scripts.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    candidates = [folder / "__init__.py" for folder in folders] + [folders[-1].with_suffix(".py")]
    return [file for file in candidates if file.exists()]


def test_jobs_that_compute_choose_their_arithmetic_before_they_load_numpy(root: Path) -> None:
    scripts = [path for path in (root / "scripts").glob("*.py") if "workflow.deterministic" in path.read_text()]
    assert len(scripts) > 10
    for script in scripts:
        modules = [
            node.module or "" for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.ImportFrom)
        ]
        others = [name for name in modules if name.split(".")[0] not in sys.stdlib_module_names]
        assert others[0] == "loadstone.workflow.deterministic", script
