"""What Loadstone installs and ships, as its locks say: `make licenses` and `make sbom`.

in:  uv.lock, envs/tools/**/go.mod and package-lock.json, envs/licenses.yaml
out: licenses: one line for each component; exit code 1 when one has no license in envs/licenses.yaml
     sbom: dist/loadstone-<version>.cdx.json, CycloneDX 1.5, the same bytes for the same locks
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vl_convert
import yaml

_ROOT = Path(__file__).resolve().parents[1]
_UV = _ROOT / ".tools/uv/bin/uv"
_OURS = {"loadstone", "snakemake-executor-plugin-kubernetes-shared"}


@dataclass(frozen=True)
class Component:
    """`license` is an SPDX expression, or empty if nobody knows it. `kind` is that of a package URL."""

    kind: str
    name: str
    version: str
    license: str

    @property
    def purl(self) -> str:
        """The package URL."""
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"


def components(root: Path = _ROOT) -> list[Component]:
    """All of them, without those of Loadstone itself."""
    known = yaml.safe_load((root / "envs/licenses.yaml").read_text())
    found = {
        *_python(root, known["pypi"]),
        *_go(root, known["golang"]),
        *_npm(root, known["npm"]),
        *_pages(known["pages"]),
    }
    return sorted(found, key=lambda each: (each.kind, each.name, each.version))


def _python(root: Path, known: dict[str, str]) -> Iterator[Component]:
    for package in tomllib.loads((root / "uv.lock").read_text())["package"]:
        if package["name"] not in _OURS:
            yield Component("pypi", package["name"], package["version"], known.get(package["name"], ""))


def _go(root: Path, known: dict[str, str]) -> Iterator[Component]:
    for file in (root / "envs/tools").rglob("go.mod"):
        for name, version in re.findall(r"^(?:require )?\s*(\S+\.\S+) (v\S+)", file.read_text(), re.MULTILINE):
            yield Component("golang", name, version, known.get(name, ""))


def _npm(root: Path, known: dict[str, str]) -> Iterator[Component]:
    for file in (root / "envs/tools").rglob("package-lock.json"):
        for path, package in json.loads(file.read_text())["packages"].items():
            if path:
                name = path.rpartition("node_modules/")[2]
                yield Component("npm", name, package["version"], package.get("license") or known.get(name, ""))


def _pages(known: dict[str, str]) -> Iterator[Component]:
    """The charts' JavaScript, which every site contains: from the wheel vl-convert-python."""
    versions = {
        "vega": vl_convert.get_vega_version(),
        "vega-lite": vl_convert.get_vegalite_versions()[-1],
        "vega-embed": vl_convert.get_vega_embed_version(),
    }
    return (Component("npm", name, version, known.get(name, "")) for name, version in versions.items())


def licenses() -> int:
    """Print them; returns the exit code."""
    found = components()
    for each in found:
        print(f"{each.license or 'UNKNOWN':<28} {each.kind:<6} {each.name} {each.version}")
    unknown = [f"{each.kind} {each.name}" for each in found if not each.license]
    print(f"licenses: {len(found)} components, {len({each.license for each in found})} licenses")
    if unknown:
        print("licenses: add to envs/licenses.yaml:", ", ".join(unknown))
    return int(bool(unknown))


def bill_of_materials() -> dict[str, Any]:
    """What `make setup`, `make k6`, `make artillery` and `make ask` install: uv's list, and what is not of Python."""
    export = [_UV, "export", "--frozen", "--quiet", "--no-emit-local", "--format", "cyclonedx1.5"]
    done = subprocess.run(export, cwd=_ROOT, check=True, capture_output=True, text=True)
    bill: dict[str, Any] = json.loads(done.stdout)
    # Neither a time nor a number of chance.
    del bill["serialNumber"], bill["metadata"]["timestamp"]
    found = components()
    of = {(each.name, each.version): each.license for each in found if each.kind == "pypi"}
    for entry in bill["components"]:
        entry["licenses"] = [{"expression": of[entry["name"], entry["version"]]}]
    bill["components"] += [
        {
            "type": "library",
            "bom-ref": each.purl,
            "name": each.name,
            "version": each.version,
            "purl": each.purl,
            "licenses": [{"expression": each.license}],
        }
        for each in found
        if each.kind != "pypi"
    ]
    return bill


def sbom() -> int:
    """Write the bill of materials; returns the exit code."""
    bill = bill_of_materials()
    file = _ROOT / f"dist/loadstone-{bill['metadata']['component']['version']}.cdx.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(bill, indent=2) + "\n")
    print(f"sbom: {file.relative_to(_ROOT)}, {len(bill['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit({"licenses": licenses, "sbom": sbom}[sys.argv[1]]())
