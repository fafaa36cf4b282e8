"""Commands whose dry run shows what they would do: extend, import, publish, push and pull (`show_preview`).

Faults of a destination are reported before the first job (`check`).
"""

from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError, printable
from loadstone.publish.site.publish import configured_destination

_TITLES = {
    "extend": "Would extend the newest complete campaign:",
    "import": "Would import into the archive:",
    "publish": "Would publish the site as it is now:",
    "push": "Would push the archive as it is now:",
    "pull": "Would pull the archive as it is now:",
}


def check(targets: Set[str], config: Mapping[str, Any]) -> None:
    """Before the first job. Raises LoadstoneError when the destination can't be used."""
    if "pull" in targets and targets != {"pull"}:
        # They were planned before the transfer, and might collect runs that are pulled.
        raise LoadstoneError("`pull` is a command of its own: give other targets after it")
    if "publish" in targets:
        configured_destination(config.get("publish"))
    if targets & {"push", "pull"}:
        from loadstone.publish import s3  # noqa: PLC0415 - most commands need no bucket

        with s3.opened(config.get("storage")) as bucket:
            bucket.listing(s3.PUSHING)


def preview(target: str, config: Mapping[str, Any]) -> list[str]:
    """The lines of a preview: what a command would do now. Reads archive, site and destination only.

    Raises LoadstoneError.
    """
    archive, tables, reports = (Path(config[name]) for name in ("archive", "tables", "reports"))
    # These modules take longer to load than most commands.
    if target == "extend":
        from loadstone.collect import extend  # noqa: PLC0415

        return extend.preview(config)
    if target == "import":
        from loadstone.importing import plan  # noqa: PLC0415

        return plan.make(archive).lines()
    if target == "publish":
        from loadstone.publish.site import publish  # noqa: PLC0415

        to = configured_destination(config.get("publish"))
        return publish.preview(reports, to, keep=config["publish"].get("keep"))
    from loadstone.publish.bucket import transfer  # noqa: PLC0415

    return transfer.preview(target, archive, tables, config.get("storage"))


def show_preview(
    target: str,
    targets: Set[str],
    config: Mapping[str, Any],
    log: Callable[[str], None],
    complain: Callable[[str], None],
) -> None:
    """Show the preview of a command in a dry run; end the program with exit code 1 when it would be refused.

    The one place where a function of a rule shows something or ends the program: in a dry run Snakemake calls no hooks
    and runs no job, while it reads the Snakefile it does not know yet that the run is dry, and it shows an exception of
    a function of a rule as a traceback.
    """
    try:
        check(targets, config)
        log("\n".join(map(printable, [_TITLES[target], *preview(target, config)])))
    except LoadstoneError as error:
        complain(printable(str(error)))
        raise SystemExit(1) from None
