"""Whether the version of pyproject.toml can be released: `make release-check`.

Prints a line for each step, and ends at the first that fails. The wheel is installed into an empty environment, with
what uv.lock pins, and the demo is measured from the unpacked source distribution by that environment alone: the demo's
ports must be free.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import metadata
import yaml

_ROOT = Path(__file__).resolve().parents[1]
_UV = _ROOT / ".tools/uv/bin/uv"


class CheckError(Exception):
    """What is wrong, in words."""


def run(*command: str | Path, folder: Path = _ROOT, **variables: str) -> str:
    """Its output. Raises CheckError with the end of it."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CheckError(f"{' '.join(map(str, command[:4]))}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def version() -> str:
    """All files name the same version, and uv.lock fits."""
    if names := metadata.outdated():
        raise CheckError(f"{', '.join(names)}: another version than pyproject.toml; `make metadata` corrects it")
    run(_UV, "lock", "--check", "--python", sys.executable)
    if run("git", "tag", "--list", f"v{metadata.version()}"):
        raise CheckError(f"{metadata.version()} was released")
    return metadata.version()


def changelog() -> str:
    """Its first heading is that of the version, or Unreleased until then."""
    headings = re.findall(r"^## (.+)$", (_ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    expected = ("Unreleased", metadata.version())
    if not headings or headings[0].split(" ")[0] not in expected:
        raise CheckError(f"CHANGELOG.md starts with {headings[:1]}, expected one of {expected}")
    return headings[0]


def schemas() -> str:
    """Since the last tag, what the schemas of index.json and metadata require and know is still there."""
    last = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if last.returncode:
        return "no release to compare with"
    for name in ("index", "metadata-5", "extension"):
        file = f"config/schemas/{name}.schema.json"
        old, new = (
            json.loads(run("git", "show", f"{last.stdout.strip()}:{file}")),
            json.loads((_ROOT / file).read_text()),
        )
        if gone := lost(old, new):
            raise CheckError(f"{file}: readers of {last.stdout.strip()} miss {', '.join(gone)}")
    return f"compatible with {last.stdout.strip()}"


def lost(old: object, new: object, path: str = "") -> list[str]:
    """Properties of an older JSON Schema that a newer one lacks, or no longer requires."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    found = [f"{path}/{name}" for name in old.get("properties", {}) if name not in new.get("properties", {})]
    found += [f"{path}/{name} (required)" for name in old.get("required", []) if name not in new.get("required", [])]
    for key, value in old.items():
        if isinstance(value, dict) and key in new:
            found += lost(value, new[key], f"{path}/{key}")
    return found


def upgrades() -> str:
    """Archives with metadata of every version, and tables of older versions: their tests."""
    tests = [
        "tests/archive/test_metadata.py",
        "tests/archive/test_metadata_shapes.py",
        "tests/archive/test_metadata_schema.py",
    ]
    tests += ["tests/tables/test_upgrades.py"]
    return (
        run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests).strip().splitlines()[-1].strip("= ")
    )


def built(folder: Path) -> str:
    """Source distribution and wheel; the wheel is made of the source distribution."""
    run(_UV, "build", "--quiet", "--python", sys.executable, "--out-dir", folder)
    return ", ".join(sorted(file.name for file in folder.iterdir() if file.suffix != ".txt" and file.name[0] != "."))


def installed(folder: Path) -> str:
    """Into an empty environment: the packages of uv.lock, and the wheel."""
    pinned, python = folder / "pinned.txt", folder / "venv/bin/python"
    run(_UV, "export", "--quiet", "--frozen", "--no-emit-project", "--output-file", pinned)
    run(_UV, "venv", "--quiet", "--python", sys.executable, folder / "venv")
    run(_UV, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", pinned)
    (wheel,) = folder.glob("*.whl")
    run(_UV, "pip", "install", "--quiet", "--python", python, "--no-deps", wheel)
    where = run(python, "-P", "-c", "import loadstone as l; print(l.__version__, l.__file__)", folder=folder).split()
    if where[0] != metadata.version() or not Path(where[1]).is_relative_to(folder):
        raise CheckError(f"another library was imported: {where}")
    return f"loadstone {where[0]}"


def demo(folder: Path) -> str:
    """In the unpacked source distribution, by the library of the wheel: a shorter demo, all of its variants."""
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    checkout = folder / sdist.name.removesuffix(".tar.gz")
    run(folder / "venv/bin/python", "envs/metadata.py", "--check", folder=checkout)
    shutil.rmtree(checkout / "scripts/loadstone")
    config = yaml.safe_load((checkout / "config/config.yaml").read_text())
    config["sweep"] |= {"rates": [100], "runs": 2, "duration": "1s"}
    (checkout / "config/config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    path = os.pathsep.join([str(folder / "venv/bin"), str(_ROOT / ".tools/bin"), "/usr/bin", "/bin"])
    for arguments in (["1", "open"], ["all"]):
        run(folder / "venv/bin/snakemake", "--cores", *arguments, folder=checkout, PATH=path)
    index = json.loads((checkout / "reports/index.json").read_text())
    runs = len(list((checkout / "results/archive").rglob("*.results.json.zst")))
    if runs != 2 * len(config["sweep"]["variants"]) or len(index["campaigns"]) != 1:
        raise CheckError(f"{runs} runs, {len(index['campaigns'])} campaigns")
    return f"{runs} runs, {len(list((checkout / 'reports').rglob('*.html')))} pages"


def main() -> int:
    """Returns the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps = {
            "version": version,
            "changelog": changelog,
            "schemas": schemas,
            "upgrades": upgrades,
            "build": lambda: built(folder),
            "install": lambda: installed(folder),
            "demo": lambda: demo(folder),
        }
        for step, check in steps.items():
            try:
                print(f"release-check: {step}: {check()}", flush=True)
            except (CheckError, OSError, ValueError) as error:
                print(f"release-check: {step}: FAILED: {error}", flush=True)
                return 1
    print(f"release-check: {metadata.version()} can be released")
    return 0


if __name__ == "__main__":
    sys.exit(main())
