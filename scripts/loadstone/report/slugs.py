"""Names of pages: letters, digits, ``.``, ``_`` and ``-`` only, whatever people called what the pages are about."""

import hashlib
import re

from loadstone.archive import Campaign

_USUAL_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)", re.ASCII
)  # seconds may be absent: see parse_timestamp


def slug(campaign: Campaign) -> str:
    """A campaign's name in file names and addresses of the site: letters, digits, ``.``, ``_`` and ``-`` only.

    Names that had other characters than a plain name has, and timestamps of another form than the usual one, get a
    short hash, so that no two meet; so do those with capitals, since not every file system tells them from small
    letters.
    """
    names, timestamp = (campaign.app, campaign.host), campaign.timestamp
    is_usual = _USUAL_TIMESTAMP.fullmatch(timestamp) is not None and _is_plain(names)
    shown = [*map(_plain, names), _plain(timestamp.replace(":", ""))]
    return _page_name(shown, (*names, timestamp), is_usual)


def variant_slug(app: str, variant: str) -> str:
    """The same of a variant of an app."""
    names = (app, variant)
    return _page_name(list(map(_plain, names)), names, _is_plain(names))


def _plain(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", part).strip(".-")[:60]


def _is_plain(names: tuple[str, ...]) -> bool:
    return all(name and name == _plain(name).lower() and not set("_+") & set(name) for name in names)


def _page_name(shown: list[str], names: tuple[str, ...], is_unique: bool) -> str:
    text = "_".join(shown).replace("+", "p")
    if is_unique:
        return text
    return f"{text}_{hashlib.sha256(chr(0).join(names).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
