"""The files that a k6 script reads besides itself: modules that it imports, and what it opens.

k6 itself says which: ``k6 archive`` runs the script's global code and packs all that was read.
"""

import json
import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadstone.collect.generators import base
from loadstone.config import changes, target
from loadstone.errors import LoadstoneError
from loadstone.process import Minder, run

_PACKED = "file/"


def of_sweep(config: Mapping[str, Any]) -> list[str]:
    """Those of the sweep's script, relative to its folder; none without a script of the user's own.

    Raises LoadstoneError with what k6 says when the script can't be loaded.
    """
    script = config["sweep"].get("script")
    if script is None:
        return []
    path = Path(script["file"]).resolve()
    with tempfile.TemporaryDirectory() as folder, Minder() as minder:
        beside = Path(folder).resolve()
        given, packed = beside / "request.json", beside / "packed.tar"
        given.write_text(json.dumps(_given(config)))
        variables = base.environment("K6_", **script.get("environment", {})) | {
            "K6_NO_USAGE_REPORT": "true",
            "K6_AUTO_EXTENSION_RESOLUTION": "false",
            "LOADSTONE": str(given),
        }
        command = ["k6", "archive", "--quiet", "--no-color", "--address=", "--include-system-env-vars"]
        run([*command, f"--archive-out={packed}", str(path)], minder, beside / "log", environment=variables)
        with tarfile.open(packed) as archive:
            names = [Path("/", entry.name.removeprefix(_PACKED)) for entry in archive if _is_packed(entry)]
    return sorted(os.path.relpath(name, path.parent) for name in names if name not in (path, given))


def _is_packed(entry: tarfile.TarInfo) -> bool:
    return entry.isfile() and entry.name.startswith(_PACKED)


def _given(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the script is given of a run, of the first variant: with marks where credentials are."""
    variant = config["sweep"]["variants"][0]
    try:
        identity = changes.recordable(target.variant_identity(config["target"], variant))
    except KeyError:
        raise LoadstoneError(f"the configuration declares no target variant {variant!r}") from None
    request = identity["request"]
    return {
        "request": {
            "method": request["method"],
            "url": request["url"],
            "headers": base.one_line(request["header"]),
            "body": request.get("body"),
            "timeout_ms": 1000,
        },
        "draw": {},
        "requests": {},
    }
