"""One command of Snakemake in this folder: from before its first job until after its last, and its dry run.

In: `Declarations`, and the targets that the user named. Out: the folder's lock, the cluster's keeper, the progress
page. Nothing here depends on Snakemake: rules/common.smk converts a LoadstoneError.
"""

import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from types import TracebackType
from typing import Any

from loadstone import archive
from loadstone.archive.locks import hold
from loadstone.archive.progress import Journal
from loadstone.collect.targets import session
from loadstone.collect.targets.external import keeper as external
from loadstone.config import GATE_FILE, GATE_REPORTS
from loadstone.config import target as declared_target
from loadstone.errors import LoadstoneError, printable
from loadstone.process import Detached, note_signals
from loadstone.publish.site.publish import configured_destination
from loadstone.report import progress_page
from loadstone.report.progress_page import ProgressPage
from loadstone.text import counted
from loadstone.workflow.declarations import JOURNAL, Declarations

_LOCK = Path(".snakemake/loadstone.archive.locks")
_READ_ONLY = {"plan", "rights"}  # targets that change nothing here
_ATTACKING = {"all", "attacks"}
_SUMMARISED = {"all", "report", "tables"}
_RESTORED = {
    "local": "The processes of the target have ended. ",
    "kubernetes": "The cluster was restored. ",
    "external": "The target was cleaned up. ",
}
# Commands whose dry run shows what they would do.
_PREVIEWED = {
    "open": "Would open a campaign:",
    "extend": "Would extend the newest complete campaign:",
    "import": "Would import into the archive:",
    "publish": "Would publish the site as it is now:",
    "push": "Would push the archive as it is now:",
    "pull": "Would pull the archive as it is now:",
}
_SIGNALS: dict[int, str] = {signal.SIGINT: "was interrupted", signal.SIGTERM: "was terminated (SIGTERM)"}


def may_attack(targets: Set[str]) -> bool:
    """Whether these targets, named by the user or the default, may attack; all others only analyse."""
    return not targets or bool(_ATTACKING & targets)


def check_folder() -> None:
    """Raise LoadstoneError where this user may not write; Snakemake would show a traceback."""
    for folder in (Path(), _LOCK.parent, _LOCK.parent / "metadata"):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise LoadstoneError(
                f"you may not write in {folder.resolve()}, which belongs to another user: use a checkout of your own; "
                "`archive` in its configuration may be an archive that others write"
            )


def is_cluster_to_put_back(declared: Declarations) -> bool:
    """Whether an earlier command left a cluster changed, and no run of this command restores it."""
    kind = _keeper_kind(declared.config)
    return bool(kind) and not any(declared.snapshot.missing.values()) and _has_records(kind)


def _keeper_kind(config: Mapping[str, Any]) -> str:
    """The kind of a target that a keeper restores; empty for all others."""
    target = config.get("target", {})
    kind: str = target.get("kind", "")
    return kind if kind == "kubernetes" or (kind == "external" and declared_target.has_commands(target)) else ""


def _has_records(kind: str) -> bool:
    """Whether an earlier command of this folder left anything to restore."""
    if kind == "kubernetes":
        return session.has_records()
    try:
        return external.has_records()
    except LoadstoneError:  # one can't be read: the keeper says which
        return True


def clamp_mtimes(files: Iterable[str]) -> None:
    """Set mtimes in the future, from before the clock was set back, to now.

    Otherwise new outputs would be older than their inputs, which Snakemake refuses until the clock has caught up.
    """
    now = time.time()
    for file in files:
        with contextlib.suppress(OSError):  # not there yet, or somebody else's: Snakemake reports what is wrong
            if Path(file).stat().st_mtime > now:
                os.utime(file, (now, now))


class Command:
    """`targets` are those that the user named; `touch`: no job runs, so the cluster is not needed.

    Its methods raise LoadstoneError.
    """

    def __init__(
        self,
        declared: Declarations,
        targets: Set[str],
        *,
        touch: bool,
        log: Callable[[str], None],
        complain: Callable[[str], None],
    ) -> None:
        self._config, self._snapshot = declared.config, declared.snapshot
        self._variants = declared.variants
        self._targets, self._touch = targets, touch
        self.is_read_only = bool(targets) and targets <= _READ_ONLY
        self._attacks = may_attack(targets)
        self._log, self._complain = log, complain
        self._page = ProgressPage(Path(self._config["reports"]), **declared.progress_options, log=log)
        self._keeper: Detached | None = None
        self._signals: list[int] = []

    def start(self) -> None:
        """Before the first job. Only one command at a time in a folder, except for those that change nothing.

        Unlike Snakemake's own lock, this one ends with its holder.
        """
        if not self._touch:
            check_destination(self._targets, self._config)
        if not self.is_read_only:
            hold("snakemake", _LOCK)
        self._open_session()
        if self.is_read_only:
            return
        self._signals = note_signals()
        sys.excepthook = self._excepthook
        try:
            self._note_start()
        except (OSError, LoadstoneError) as error:
            self._refuse(f"the progress of this command can't be recorded: {error}")
        if "gate" in self._targets and not self._touch:  # an earlier outcome must not be taken for this one's
            for name in (GATE_FILE, *GATE_REPORTS):
                Path(self._config["reports"], name).unlink(missing_ok=True)

    @property
    def is_interrupted(self) -> bool:
        """Whether it was asked to end, by Ctrl-C or SIGTERM."""
        return bool(self._signals)

    def end(self, *, success: bool) -> None:
        """After the last job: write on the progress page how the command ended, and wait for the cluster.

        An interrupted command says what is kept and how it goes on.
        """
        has_keeper = self._keeper is not None
        if not self.is_read_only:
            how = next((_SIGNALS[number] for number in self._signals), "ended with an error")
            try:
                journal = Journal(Path(JOURNAL))
                progress_page.ended(journal, self._page, f"the command {'has ended' if success else how}")
            except (OSError, LoadstoneError) as error:  # goes on, to wait for the cluster
                self._complain(printable(f"the end of this command can't be recorded: {error}"))
        try:
            self._close_session()
        except LoadstoneError:
            if self.is_interrupted and not success:
                self._log(self._interruption(""))
            raise
        if self.is_interrupted and not success:
            kind = self._config.get("target", {}).get("kind", "")
            measured = kind == "local" and self._attacks and any(self._snapshot.missing.values())
            self._log(self._interruption(_RESTORED[kind] if measured or has_keeper else ""))
        if success and not self._touch and (not self._targets or self._targets & _SUMMARISED):
            self._show_summary()

    def _excepthook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """A second Ctrl-C, for which Snakemake has no message. Its logger has ended by now."""
        if not issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        text = (
            "Interrupted again, so this command does not wait. Its jobs and the keeper of the target are processes of "
            f"their own, which still end what runs and put the target back. {self._go_on}"
        )
        print(f"\n{text}", file=sys.stderr, flush=True)

    @property
    def _go_on(self) -> str:
        return f"To go on, run it again: {shlex.join(['snakemake', *sys.argv[1:]])}\n"

    def _interruption(self, put_back: str) -> str:
        """What an interruption means for results and target, and how to go on."""
        kept = "What was finished is kept. "
        if self._attacks and (planned := [run for runs in self._snapshot.missing.values() for run in runs]):
            collected = {cell: archive.scan_cell(cell).collected() for cell in self._snapshot.missing_cells}
            done = sum(run.run in collected[run.cell] for run in planned)
            kept = (
                f"Collected and kept: {done} of {counted(len(planned), 'missing run')}; an interrupted run is not "
                "in the archive. "
            )
        return f"\nThis command {_SIGNALS[self._signals[0]]}. {kept}{put_back}{self._go_on}"

    def _show_summary(self) -> None:
        from loadstone.workflow import summary  # noqa: PLC0415 - only at the end of a command

        try:
            summary.show(self._config, self._variants)
        except Exception as error:  # noqa: BLE001 - no reason to call the command failed
            self._complain(printable(f"the summary can't be shown: {error!r}"))

    def _note_start(self) -> None:
        """Write on the progress page that this command collects, or that an earlier one was killed."""
        journal, snapshot = Journal(Path(JOURNAL)), self._snapshot
        progress_page.ended(journal, self._page)
        if "attacks" in self._targets and not snapshot.missing:
            self._log("nothing to collect: no campaign of this host is open (`snakemake --cores 1 open` begins one)")
        if self._attacks and snapshot.missing:
            missing = {snapshot.campaign(key): len(runs) for key, runs in snapshot.missing.items()}
            journal.begin(snapshot.archive, Path(self._config["reports"]), missing)
            progress_page.begun(journal, self._page, snapshot.archive)

    def _open_session(self) -> None:
        """Start a keeper for the cluster when this command may attack it or has to restore it.

        Variants whose declaration has changed since they were planned are refused before the cluster is taken.
        """
        kind = _keeper_kind(self._config)
        if not self._attacks or self._touch:
            return
        if kind != "external" and _has_records("external"):
            raise LoadstoneError(
                "an earlier sweep of this folder left a variant prepared: `snakemake --cores 1 restore` cleans up"
            )
        if not kind:
            return
        target, cells = self._config["target"], self._snapshot.missing_cells
        refusal, needed = None, {cell.variant_dir for cell in cells}
        try:
            declared_target.check_declared(cells, target)
        except LoadstoneError as error:
            refusal, needed = error, set()
        if needed or _has_records(kind):
            campaigns = ["/".join(key) for key, runs in self._snapshot.missing.items() if runs]
            self._keeper = session.start(target, self._config["host"], needed, campaigns, self._log)
        if refusal:
            self._refuse(str(refusal))

    def _close_session(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper and (outcome := session.outcome_text(keeper.finish(), self._config["target"]["kind"])):
            raise LoadstoneError(outcome)

    def _refuse(self, text: str) -> None:
        """End before the first job, after the cluster has been restored."""
        try:
            self._close_session()
        except LoadstoneError as error:
            text = f"{text}\n{error}"
        raise LoadstoneError(text)


# --- dry runs of transfers --------------------------------------------------------------------------------------------


def check_destination(targets: Set[str], config: Mapping[str, Any]) -> None:
    """Before the first job of publish, push or pull. Raises LoadstoneError when the destination can't be used."""
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
    if target == "open":
        from loadstone.collect import sweep  # noqa: PLC0415

        return sweep.preview(config)
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
        check_destination(targets, config)
        log("\n".join(map(printable, [_PREVIEWED[target], *preview(target, config)])))
    except LoadstoneError as error:
        complain(printable(str(error)))
        raise SystemExit(1) from None
