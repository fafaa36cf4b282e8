"""What is needed to reproduce and to cite a page: versions, seeds, checksums, code behind tables, and an RO-Crate.

RO-Crate 1.2 (https://w3id.org/ro/crate/1.2): ``<page>-ro-crate-metadata.json`` describes a page,
``ro-crate-metadata.json`` the site. License, authors and identifiers come from the configuration, or are missing.
"""

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.archive import Campaign
from loadstone.archive.durable import sha256_of
from loadstone.archive.metadata import Metadata
from loadstone.config.comparisons import Comparison
from loadstone.readers import load_generators
from loadstone.report.numbers import joined
from loadstone.report.output import write_page, write_text
from loadstone.report.queries import Queries, Row
from loadstone.report.site_layout import CHECKSUMS_SUFFIX, CRATE, MADE_HERE, content_type
from loadstone.tables import PLAIN, SCOPED, database, layout, schema
from loadstone.text import counted

# --- checksums and versions -------------------------------------------------------------------------------------------

# First line of a list of checksums; for sha256sum, it is a comment.
_LIBRARIES = ("duckdb", "pyarrow", "numpy", "scipy", "altair")


@dataclass(frozen=True)
class Evidence:
    """What a page was built from: raw results, Parquet files by their names, and the metadata of all cells.

    `inputs` are the raw results: the SHA-256 of each file, and its name in the archive.
    """

    inputs: Sequence[tuple[str, str]]
    tables: Sequence[tuple[str, Path]]
    metadata: Sequence[Metadata]

    @property
    def checksums(self) -> str:
        """The content of the file next to the page: a line per input, as sha256sum writes and checks them."""
        return "\n".join([MADE_HERE, *(_line(digest, source) for digest, source in self.inputs), ""])

    @property
    def digest(self) -> str:
        """SHA-256 of that content: one checksum of all inputs."""
        return hashlib.sha256(self.checksums.encode("utf-8", "backslashreplace")).hexdigest()


def inputs(
    queries: Queries,
    tables: Path,
    campaigns: Sequence[Campaign],
    takes: Callable[[Row], bool] = lambda _: True,
) -> list[tuple[str, str]]:
    """The raw results behind a page; `takes` selects the page's runs. Needs a view of table ``facts``."""
    database.add_view(queries.connection, tables, "facts", campaigns)
    rows = filter(takes, queries.rows("page_inputs"))
    return list(dict.fromkeys((row["results_sha256"], row["source"]) for row in rows))


def _line(digest: str, source: str) -> str:
    """A line as ``sha256sum`` writes it, with backslashes and line ends escaped."""
    escaped = source.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == source else chr(92)}{digest}  {escaped}"


def context(name: str, evidence: Evidence) -> dict[str, Any]:
    """The variables of ``reproduce.html`` on the page `name`."""
    cells, n_inputs = evidence.metadata, len(evidence.inputs)
    seeds = joined(str(cell.seed) for cell in cells if cell.seed is not None)
    orders = joined(cell.order for cell in cells)
    generators = joined(" ".join(filter(None, (cell.generator, cell.generator_version))) for cell in cells)
    tools: dict[str, str] = {}
    for cell in cells:
        tools |= cell.tools
    facts = [
        ("Built with", ", ".join(f"{name} {text}" for name, text in _versions().items())),
        ("Collected with", joined([generators, *(f"{tool} {text}" for tool, text in sorted(tools.items()))])),
        ("Seed of the order of runs", f"{seeds} (order: {orders or 'not recorded'})" if seeds else "not recorded"),
        (
            "Seed of intervals",
            "not configurable: derived from each cell's name, so that the same data give the same interval",
        ),
        ("Inputs", f"{counted(n_inputs, 'file')} of the archive" if n_inputs else "no checksums recorded"),
    ]
    return {
        "made_with": facts,
        "inputs_file": f"{name}{CHECKSUMS_SUFFIX}" if n_inputs else None,
        "inputs_digest": evidence.digest,
        "crate_file": f"{name}{CRATE_SUFFIX}",
    }


@cache
def _versions() -> dict[str, str]:
    """Versions of Loadstone, Python (without its patch release) and the libraries that compute."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Loadstone": __version__, "Python": python, **{name: version(name) for name in _LIBRARIES}}


# --- RO-Crate ---------------------------------------------------------------------------------------------------------

CRATE_SUFFIX = "-ro-crate-metadata.json"
_PROFILE = "https://w3id.org/ro/crate/1.2"
_ENVOY = "https://www.envoyproxy.io"
_TYPES = {".parquet": "application/vnd.apache.parquet", ".zst": "application/zstd", ".json": "application/json"}

Entity = dict[str, Any]


@dataclass(frozen=True)
class About:
    """What a crate is about: its title and description, and the campaigns that its figures come from.

    `options` is the configuration's ``report``, which may name license, authors and identifier.
    """

    title: str
    description: str
    campaigns: Sequence[Campaign]
    options: Mapping[str, Any]


def crate_of(page: Path) -> Path:
    """The crate of a page."""
    return page.with_name(f"{page.stem}{CRATE_SUFFIX}")


def write_page_crate(page: Path, about: About, evidence: Evidence) -> list[Path]:
    """Write the crate next to `page`; returns the page's files.

    These are the page, the checksums of its inputs, the picture for links to it, the data that it loads, and the crate,
    which describes the others.
    """
    checksums = page.with_suffix(CHECKSUMS_SUFFIX)
    beside = [path for path in (checksums, page.with_suffix(".png")) if path.is_file()]
    files = [page, *beside, *sorted(page.with_suffix("").glob("*.js"))]
    based_on = [_hashed(name, digest) for digest, name in evidence.inputs]
    based_on += [_hashed(f"tables/{name}", sha256_of(path)) for name, path in evidence.tables]
    software = [*_own_software(), *_collected_with(evidence.metadata)]
    what = "Tables and page were built from raw results"
    build = _build(what, software, page.name, object=_references(based_on))
    parts = [_file(path.relative_to(page.parent).as_posix(), path) for path in files]
    root = _root(about, parts) | {"isBasedOn": _references(based_on)}
    _write_crate(crate_of(page), about, root, [*parts, *based_on, *software, build])
    return [*files, crate_of(page)]


def write_site_crate(reports: Path, about: About, pages: Iterable[str]) -> None:
    """Write the crate of the whole site; `pages` are its pages by name; those that have a crate refer to it."""
    parts = []
    for name in sorted(pages):
        path = reports / name
        parts.append(_file(name, path))
        if crate_of(path).is_file():
            crate = _file(f"{name.removesuffix('.html')}{CRATE_SUFFIX}", crate_of(path))
            parts[-1]["subjectOf"] = {"@id": crate["@id"]}
            parts.append(crate | {"conformsTo": {"@id": _PROFILE}})
    software = _own_software()
    build = _build("The site was built from tables", software, "./")
    _write_crate(reports / CRATE, about, _root(about, parts), [*parts, *software, build])


def _build(name: str, software: Iterable[Entity], result: str, **used: Any) -> Entity:
    return {
        "@id": "#build",
        "@type": "CreateAction",
        "name": name,
        "instrument": _references(software),
        **used,
        "result": {"@id": result},
    }


def _root(about: About, parts: Sequence[Entity]) -> Entity:
    options = about.options
    newest = max((campaign.instant for campaign in about.campaigns), default=None)
    # The specification wants a date; the day of the newest data is known and the same whenever the page is built.
    published = options.get("published") or (newest.date().isoformat() if newest else "1970-01-01")
    found: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.title,
        "description": f"{about.description} Made by Loadstone.",
        "datePublished": published,
        "hasPart": _references(parts),
        "mentions": {"@id": "#build"},
    }
    if "license" in options:
        found["license"] = {"@id": options["license"]}
    if authors := _authors(options):
        found["author"] = _references(authors)
    if "doi" in options:
        found |= {"identifier": f"https://doi.org/{options['doi']}", "cite-as": f"https://doi.org/{options['doi']}"}
    return found


def _authors(options: Mapping[str, Any]) -> list[Entity]:
    return [
        {
            "@id": f"https://orcid.org/{author['orcid']}" if "orcid" in author else f"#author-{number}",
            "@type": "Person",
            **{name: author[name] for name in ("name", "affiliation") if name in author},
        }
        for number, author in enumerate(options.get("authors") or (), 1)
    ]


def _file(name: str, path: Path) -> Entity:
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "contentSize": str(path.stat().st_size),
        "encodingFormat": content_type(name).partition(";")[0],
        "sha256": sha256_of(path),
    }


def _hashed(name: str, digest: str) -> Entity:
    """A file that is not in the site and is identified by its content."""
    name = name.encode("utf-8", "backslashreplace").decode()
    found: Entity = {"@id": f"#{hashlib.sha256(name.encode()).hexdigest()[:16]}", "@type": "CreativeWork", "name": name}
    return found | {"sha256": digest, "encodingFormat": _TYPES.get(Path(name).suffix, "application/octet-stream")}


def _own_software() -> list[Entity]:
    homes = {"Loadstone": None, "Python": "https://www.python.org/"}
    return [
        _software(name, text, homes.get(name, f"https://pypi.org/project/{name}/"))
        for name, text in _versions().items()
    ]


def _collected_with(cells: Iterable[Metadata]) -> list[Entity]:
    """Load generators and programs that metadata name with their versions."""
    named: set[tuple[str, str]] = set()
    for cell in cells:
        named.add((cell.generator, cell.generator_version or ""))
        named |= {(name.title() if name == "loadstone" else name, text) for name, text in cell.tools.items()}
    return [
        _software(name, text, _ENVOY if name == "envoy" else load_generators.home(name)) for name, text in sorted(named)
    ]


def _software(name: str, text: str, url: str | None) -> Entity:
    """One version of a program; a CreativeWork unless its URL is known, since a SoftwareApplication needs one."""
    key = hashlib.sha256(f"{name} {text}".encode()).hexdigest()[:12]
    found: Entity = {"@id": f"#software-{key}", "@type": "CreativeWork", "name": f"{name} {text}".strip()}
    found |= {"version": text} if text else {}
    return found | ({"@type": "SoftwareApplication", "url": url} if url and text else {})


def _references(entities: Iterable[Entity]) -> list[Entity]:
    return [{"@id": entity["@id"]} for entity in entities]


def _write_crate(path: Path, about: About, root: Entity, entities: Iterable[Entity]) -> None:
    descriptor: Entity = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _PROFILE},
        "about": {"@id": "./"},
    }
    own = [descriptor, root]
    if license_url := about.options.get("license"):
        own.append({"@id": license_url, "@type": "CreativeWork", "name": license_url})
    unique = {entity["@id"]: entity for entity in (*own, *_authors(about.options), *entities)}
    content = {"@context": f"{_PROFILE}/context", "@graph": list(unique.values())}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def tables_of(
    tables: Path, campaigns: Sequence[Campaign], comparison: Comparison | None = None
) -> list[tuple[str, Path]]:
    """The tables of campaigns and of a comparison, by their names."""
    named = sorted(schema.TABLES.keys() - {"spans", "trace_shares"})  # those of dumps are no part of its page
    folders = [layout.partition(tables, table, campaign) for campaign in campaigns for table in named]
    paths = [path for folder in folders for path in sorted(folder.glob("*.parquet"))]
    if comparison:
        compared = [table for table in (*PLAIN, *SCOPED) if table not in ("generators", "history")]
        files = (layout.comparison_file(tables, comparison.id, table) for table in compared)
        paths += [path for path in files if path.is_file()]
    return [(path.relative_to(tables).as_posix(), path) for path in paths]


def write_with_evidence(
    path: Path,
    template: str,
    content: Mapping[str, Any],
    about: About,
    evidence: Evidence,
) -> list[Path]:
    """Write a page of figures and, next to it, checksums of its inputs and its RO-Crate; returns its files."""
    checksums = path.with_suffix(CHECKSUMS_SUFFIX)
    if evidence.inputs:
        write_text(checksums, evidence.checksums)
    else:
        checksums.unlink(missing_ok=True)
    write_page(path, template, {**content, **context(path.stem, evidence)})
    return write_page_crate(path, about, evidence)
