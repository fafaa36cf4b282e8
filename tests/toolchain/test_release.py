"""What a release says of itself agrees; the workflow catalogue, the container, the documents' site, the check."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

sys.path.insert(0, str(Path(__file__).parents[2] / "envs"))
import metadata
import release_check

CFFCONVERT = "cffconvert==2.0.0"
# The keys that ours has, as the specification of development containers types them.
DEVCONTAINER = {
    "type": "object",
    "required": ["build"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "build": {
            "type": "object",
            "required": ["dockerfile"],
            "additionalProperties": False,
            "properties": {"dockerfile": {"type": "string"}, "context": {"type": "string"}},
        },
        "postCreateCommand": {"type": "string"},
        "remoteEnv": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "customizations": {"type": "object"},
    },
}


def test_all_files_name_one_version(root: Path, tmp_path: Path) -> None:
    assert metadata.outdated() == []
    for name in ("pyproject.toml", *metadata.PLACES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{metadata.version()}"', 'version = "12.3.4"', 1))
    assert metadata.outdated(tmp_path) == list(metadata.PLACES)
    metadata.outdated(tmp_path, write=True)
    assert metadata.outdated(tmp_path) == []
    assert json.loads((tmp_path / "codemeta.json").read_text())["version"] == "12.3.4"


def test_title_license_and_description_agree(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    code, zenodo = (json.loads((root / name).read_text()) for name in ("codemeta.json", ".zenodo.json"))
    assert citation["title"] == code["name"] == zenodo["title"] == "Loadstone"
    assert citation["abstract"] == code["description"] == zenodo["description"]
    assert citation["abstract"] in (root / "pyproject.toml").read_text()
    assert citation["license"] == zenodo["license"] == code["license"].rpartition("/")[2] == "MIT"
    assert citation["keywords"] == code["keywords"] == zenodo["keywords"]
    assert citation["authors"][0]["name"] == code["author"][0]["name"] == zenodo["creators"][0]["name"]


def test_the_citation_is_valid(root: Path) -> None:
    tool = [root / ".tools/uv/bin/uv", "tool", "run", "--quiet", "--python", sys.executable, "--from", CFFCONVERT]
    done = subprocess.run([*tool, "cffconvert", "--validate"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_rule_of_the_workflow_catalogue_is_met(root: Path) -> None:
    # All workflows.
    readme = (root / "README.md").read_text().lower()
    assert "snakemake" in readme and "workflow" in readme
    assert (root / "workflow/Snakefile").is_file()
    for rules in (root / "rules", root / "workflow/rules"):
        assert not rules.exists() or list(rules.glob("*.smk"))
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    assert sum((root / name).lstat().st_size for name in tracked.stdout.split("\0") if name) < 100_000_000
    # Those with standardised usage.
    assert len((root / "config/README.md").read_text()) > 1000
    usage = yaml.safe_load((root / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    assert isinstance(usage["mandatory-flags"]["flags"], str | list)
    assert set(usage["software-stack-deployment"]) == {"conda", "apptainer", "apptainer+conda"}
    assert all(isinstance(value, bool) for value in (*usage["software-stack-deployment"].values(), usage["report"]))


def test_the_workflow_of_the_catalogue_has_the_same_targets(root: Path) -> None:
    def targets(snakefile: str) -> str:
        command = [root / ".venv/bin/snakemake", "--snakefile", snakefile, "--list-target-rules"]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout

    assert targets("workflow/Snakefile") == targets("Snakefile") != ""


def test_every_schema_is_part_of_the_library(root: Path) -> None:
    shipped = {file.name: file.resolve() for file in (root / "scripts/loadstone/config/schemas").iterdir()}
    assert shipped == {file.name: file for file in (root / "config/schemas").iterdir()}


def test_the_development_container_is_as_specified(root: Path) -> None:
    content = json.loads((root / ".devcontainer/devcontainer.json").read_text())
    Draft202012Validator(DEVCONTAINER).validate(content)
    assert (root / ".devcontainer" / content["build"]["dockerfile"]).resolve() == root / "Dockerfile"
    assert content["postCreateCommand"].removeprefix("make ") in (root / "Makefile").read_text()


@pytest.mark.long
def test_steps_of_the_container_run_in_an_empty_folder(root: Path, tmp_path: Path) -> None:
    text = re.sub(r"\\\n", " ", (root / "Dockerfile").read_text())
    steps = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    image, work = tmp_path / "image", tmp_path / "image"
    ran = []
    for instruction, value in steps:
        if instruction == "WORKDIR":
            work = image / value.lstrip("/")
            work.mkdir(parents=True)
        elif instruction == "COPY":
            assert value == ". ."
            copy_context(root, work)
        elif instruction == "RUN" and "apt-get" in value:
            packages = re.search(r"--no-install-recommends ([\w .-]+?) &&", value)[1].split()
            known = subprocess.run(
                ["apt-cache", "show", "--no-all-versions", *packages], capture_output=True, check=False
            )
            assert known.returncode in (0, 127), known.stderr
        elif instruction == "RUN":
            environment = {
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(tmp_path / "home"),
                "PYTHON": sys.executable,
            }
            environment |= {
                name: value for name, value in os.environ.items() if "CERT" in name or "PROXY" in name.upper()
            }
            done = subprocess.run(
                ["sh", "-c", value], cwd=work, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            ran.append(value)
        elif instruction == "ENTRYPOINT":
            entry = json.loads(value)
    assert ran == ["make setup"]
    installed = image / "opt/loadstone"
    command = [part.replace("/opt/loadstone", str(installed)) for part in entry]
    path = f"{installed}/.venv/bin:{installed}/.tools/bin:/usr/bin:/bin"
    shutil.copytree(root / "config", work / "config")
    done = subprocess.run(
        [*command, "-n", "report"],
        cwd=work,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def copy_context(root: Path, target: Path) -> None:
    """What a build gets to see: the files that git knows, without those of .dockerignore."""
    ignored = (root / ".dockerignore").read_text().split()
    assert {".venv", ".tools", ".git", "results/*", "reports/*"} <= set(ignored)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if not any(name.startswith(each.rstrip("*")) for each in ignored if each[0] not in ".*"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name, follow_symlinks=False)


def test_the_site_of_the_documents_builds_and_a_dead_link_is_an_error(root: Path, tmp_path: Path) -> None:
    subprocess.run(["sh", "envs/setup.sh", "docs"], cwd=root, check=True, capture_output=True)
    target = tmp_path / "checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md", "docs", "config", "LICENSE", ".github"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        copied = target / ".tools/docs-source" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, copied)
    shutil.copy(root / "mkdocs.yml", target)

    def build() -> subprocess.CompletedProcess[str]:
        command = [root / ".tools/docs/bin/mkdocs", "build", "--strict"]
        return subprocess.run(command, cwd=target, capture_output=True, text=True, check=False)

    done = build()
    assert done.returncode == 0, done.stderr
    pages = list((target / "dist/docs").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?://(?!github)', page.read_text()), page
    with (target / ".tools/docs-source/docs/gate.md").open("a") as file:
        file.write("\n[gone](gate.md#no-such-heading)\n")
    assert build().returncode != 0


def test_a_schema_that_lost_something_is_no_release() -> None:
    old = {"required": ["a"], "properties": {"a": {}, "b": {"properties": {"c": {}}}}}
    assert release_check.lost(old, old) == []
    assert release_check.lost(old, {"properties": {"a": {}, "b": {"properties": {}}}}) == [
        "/a (required)",
        "/properties/b/c",
    ]


@pytest.mark.long
def test_this_version_could_be_released(root: Path) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "release-check"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^release-check: (\w+): ", done.stdout, re.MULTILINE)
    assert steps == ["version", "changelog", "schemas", "upgrades", "build", "install", "demo"]
