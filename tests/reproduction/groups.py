"""What four groups published, brought in by the declarations of config/examples: their files, as users have them."""

import shutil
from pathlib import Path

import yaml

GROUPS = ("3scale", "belfrage", "uds", "rancher")

# Where each declaration looks for a file or folder -> what it is in ../shared.
_FILES = {
    "3scale/README.md": "seeds/001_*.txt",
    "3scale/scenario1.json": "artillery/scenario1.json",
    "3scale/scenario3.json": "artillery/scenario3.json",
    "belfrage/README.md": "seeds/002_*.txt",
    "uds/README.md": "seeds/003_*.txt",
    "uds/samples": "uds/sidecar-k3d",
    "rancher": "k6",
}


def bring_in(checkout: Path, shared: Path, groups: tuple[str, ...] = GROUPS) -> None:
    """Put the groups' files and declarations into a checkout, as one declaration, and no other comparison."""
    for name, source in _FILES.items():
        (found,) = shared.glob(source)
        target = checkout / "old-results" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            shutil.copytree(found, target)
        else:
            shutil.copyfile(found, target)
    for kind in ("imports", "comparisons"):
        joined = [entry for group in groups for entry in _example(checkout, group, kind)]
        (checkout / f"config/{kind}.yaml").write_text(yaml.safe_dump(joined, sort_keys=False, allow_unicode=True))
    variants = yaml.safe_load((checkout / "config/variants.yaml").read_text())
    for group in groups:
        variants |= dict(_example(checkout, group, "variants"))
    (checkout / "config/variants.yaml").write_text(yaml.safe_dump(variants, sort_keys=False, allow_unicode=True))


def _example(checkout: Path, group: str, kind: str) -> list | dict:
    path = checkout / "config/examples" / group / f"{kind}.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else []
