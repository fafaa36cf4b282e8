"""The configuration's ``publish`` -> the destination that it means."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.publish.site.branch import Branch
from loadstone.publish.site.destination import Destination
from loadstone.publish.site.folder import Folder
from loadstone.publish.site.s3 import Bucket


def destination(declared: Mapping[str, Any] | None) -> Destination:
    """Where to publish. Raises LoadstoneError when nothing is declared."""
    if not declared:
        raise LoadstoneError(
            "config/config.yaml does not say where to publish, for example `publish: {to: folder, path: /srv/www}`; "
            "docs/report-and-publishing.md has every destination"
        )
    given = {key: value for key, value in declared.items() if key not in ("to", "keep")}
    if declared["to"] == "folder":
        return Folder(Path(given["path"]).expanduser())
    if declared["to"] == "branch":
        return Branch(**{"remote": "origin", "branch": "gh-pages"} | given)
    return Bucket(**given)
