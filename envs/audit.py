"""Asks whether what uv.lock pins has known vulnerabilities: `make audit`.

Exit code 1 and a list when something has. Where the advisories can't be asked (no network, a mirror without them), it
says so and ends well: nothing is known then. LOADSTONE_OSV_URL names another service of the OSV API than PyPI's own.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PIP_AUDIT = "2.10.1"
_ROOT = Path(__file__).resolve().parents[1]
_UV = _ROOT / ".tools/uv/bin/uv"


def audited(folder: Path) -> tuple[list[dict[str, Any]], str]:
    """pip-audit's entry for each pinned package, none when it could not ask; and what it printed."""
    pinned, found = folder / "pinned.txt", folder / "found.json"
    form = ["--frozen", "--all-groups", "--all-extras", "--no-emit-local", "--format", "requirements-txt"]
    export = [_UV, "export", "--quiet", *form, "--output-file", pinned]
    subprocess.run(export, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    service = os.environ.get("LOADSTONE_OSV_URL")
    asking = ["--vulnerability-service", "osv", "--osv-url", service] if service else []
    command = [_UV, "tool", "run", "--quiet", "--from", f"pip-audit=={PIP_AUDIT}", "pip-audit", "--disable-pip"]
    command += ["--requirement", pinned, "--format", "json", "--output", found, "--progress-spinner", "off", *asking]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not found.exists():
        return [], done.stderr.strip()
    entries: list[dict[str, Any]] = json.loads(found.read_text())["dependencies"]
    return entries, done.stderr.strip()


def main() -> int:
    """Say what is known; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        entries, printed = audited(Path(folder))
    known = [entry for entry in entries if "skip_reason" not in entry]
    if not known:
        why = f"they know none of {len(entries)} packages" if entries else printed[-300:]
        print("audit: not done, the advisories can't be asked from here:", why)
        return 0
    vulnerable = [(entry, each) for entry in known for each in entry["vulns"]]
    for entry, each in vulnerable:
        mended = ", ".join(each["fix_versions"]) or "no version yet"
        print(f"audit: {entry['name']} {entry['version']}: {each['id']}; mended in {mended}")
    unknown = len(entries) - len(known)
    print(f"audit: {len(known)} packages asked about, {unknown} not known there, {len(vulnerable)} vulnerabilities")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
