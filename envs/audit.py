"""Checks the packages pinned in uv.lock for known vulnerabilities: `make audit`.

Lists vulnerabilities and exits with code 1 if there are any. If the advisories are not available (no network, a mirror
without them), it prints that and exits with code 0. LOADSTONE_OSV_URL is a service with the OSV API to use instead of
PyPI's own.
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
    """pip-audit's entries for all pinned packages (none if advisories are not available), and its messages."""
    pinned, found = folder / "pinned.txt", folder / "found.json"
    form = ["--frozen", "--all-groups", "--all-extras", "--no-emit-local", "--format", "requirements-txt"]
    export = [_UV, "export", "--quiet", *form, "--output-file", pinned]
    subprocess.run(export, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    service = os.environ.get("LOADSTONE_OSV_URL")
    options = ["--vulnerability-service", "osv", "--osv-url", service] if service else []
    command = [_UV, "tool", "run", "--quiet", "--from", f"pip-audit=={PIP_AUDIT}", "pip-audit", "--disable-pip"]
    command += ["--requirement", pinned, "--format", "json", "--output", found, "--progress-spinner", "off", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not found.exists():
        return [], done.stderr.strip()
    entries: list[dict[str, Any]] = json.loads(found.read_text())["dependencies"]
    return entries, done.stderr.strip()


def main() -> int:
    """Print the result; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        entries, printed = audited(Path(folder))
    known = [entry for entry in entries if "skip_reason" not in entry]
    if not known:
        why = f"they have none of {len(entries)} packages" if entries else printed[-300:]
        print("audit: not done, advisories are not available here:", why)
        return 0
    vulnerable = [(entry, each) for entry in known for each in entry["vulns"]]
    for entry, each in vulnerable:
        fixed = ", ".join(each["fix_versions"]) or "no version yet"
        print(f"audit: {entry['name']} {entry['version']}: {each['id']}; fixed in {fixed}")
    unknown = len(entries) - len(known)
    print(f"audit: {len(known)} packages checked, {unknown} unknown to the service, {len(vulnerable)} vulnerabilities")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
