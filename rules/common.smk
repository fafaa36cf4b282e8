"""Shared by all rules: the checked configuration, a snapshot of the archive, functions for inputs and parameters.

This file defines no rules, and no other rule file defines functions. It contains only code that needs wildcards or the
workflow object; everything else is in loadstone.workflow. Functions have no side effects, except for the preview in a
dry run (loadstone/workflow/command.py explains why). Files of the archive are never inputs or outputs of rules,
because Snakemake removes outputs before jobs and after failures. loadstone/workflow/markers.py explains how work is
requested.
"""

import atexit
import os
import sys
import uuid
from pathlib import Path

import loadstone
from loadstone import config as configuration
from loadstone.errors import LoadstoneError, printable
from loadstone.process import LastingStream
from loadstone.report import site_layout
from loadstone.report.output import assets_digest
from loadstone.report.site_layout import SiteSnapshot
from loadstone.tables import ANALYSED, COMPARED
from loadstone.tables import VERSION as TABLES_VERSION
from loadstone.tables.layout import database_of
from loadstone.workflow import markers
from loadstone.workflow.command import (
    Command,
    check_folder,
    clamp_mtimes,
    is_cluster_to_put_back,
    may_attack,
    show_preview,
)
from loadstone.workflow.declarations import Declarations
from snakemake.io import is_flagged
from snakemake_interface_logger_plugins.common import LogEvent

# Snakemake imports pandas only to check whether parameters are data frames: a tenth of the time of a short command.
sys.modules.setdefault("pandas", None)

CHECKOUT = Path(loadstone.__file__).parents[2]
REQUESTED = Path(".snakemake/loadstone.plan.json").absolute()
KEY = "{app}/{host}/{timestamp}"
PART = "app_dir={app}/host_dir={host}/timestamp_dir={timestamp}/part.parquet"
HISTORY = "<tables>/history/part.parquet"


def load(config):
    """The declarations, with the snapshot of the archive. Raises WorkflowError with a clear message."""
    try:
        check_folder()
        if workflow.remote_exec:
            os.environ[markers.FILE_VARIABLE] = str(REQUESTED)
            return Declarations(config, markers.read_requested(REQUESTED, os.environ.get(markers.VARIABLE)))
        os.environ[markers.VARIABLE] = str(uuid.uuid4())
        return Declarations(config)
    except LoadstoneError as error:
        raise WorkflowError(str(error))


DECLARED = load(config)
SNAPSHOT = DECLARED.snapshot
config = DECLARED.without_credentials
FOLDERS = {name: config[name] for name in ("archive", "tables", "reports")}
CAMPAIGNS = [list(key) for key in SNAPSHOT.listings]
DUMPS = {dump.slug: dump for dump in SNAPSHOT.dumps.values()}
SITE = SiteSnapshot(Path(config["reports"]))
PAGES_OF_INDEX = [*site_layout.OVER_ALL, "ask.html", "variants.html"]
PAGES_OF_INDEX += [f"variants/{slug}.html" for slug in DECLARED.variant_pages]
PARTS_OF_INDEX = ("assets", "variants", "ask", "index")


envvars:
    markers.VARIABLE,


pathvars:
    tables=config["tables"],
    reports=config["reports"],
    database=str(database_of(Path(config["tables"]))),


wildcard_constraints:
    app="[^/]+",
    host="[^/]+",
    timestamp="[^/]+",
    rate=r"[0-9.]+",
    variant="[^/]+",
    run=r"[1-9][0-9]*",
    nth=r"[1-9][0-9]*",
    dump="[^/]+",
    comparison=r"[A-Za-z0-9][A-Za-z0-9_.-]*",
    kind="campaigns|comparisons|variants",
    slug="[^/]+",


# --- before the first job and after the last ---

COMMANDS = []
RULES = workflow.current_basedir.get_path_or_uri(secret_free=True)
IS_MODULE = not workflow.modifier.is_main_snakefile()
# What a workflow that uses this one as a module adds to the names of its rules; empty otherwise.
PREFIX, _, SUFFIX = workflow.modifier.modify_rulename("*").partition("*")


def named_targets():
    """The targets of this command, or the default, by the names of rules in this workflow.

    A colon precedes those of a workflow that uses this one as a module, so they match no rule of this one.
    """
    named = set(workflow.dag_settings.targets) or {workflow.default_target or ""}
    ours = {name for name in named if name.startswith(PREFIX) and name.endswith(SUFFIX)}
    return {name[len(PREFIX) : len(name) - len(SUFFIX)] for name in ours} | {f":{name}" for name in named - ours}


def start_command():
    command = Command(DECLARED, named_targets(), touch=workflow.touch, log=logger.info, complain=logger.error)
    COMMANDS.append(command)
    for handler in logger.handlers:
        if getattr(handler, "stream", None) in (sys.stdout, sys.stderr):
            handler.setStream(LastingStream(handler.stream))
            handler.addFilter(lambda record: not (command.is_interrupted and is_failed_job(record)))
            handler.addFilter(lambda record: not is_exit_code(record))
    try:
        command.start()
        clamp_mtimes(file for job in workflow.dag.jobs for file in job.output)
        clamp_mtimes(file for job in workflow.dag.jobs for file in job.input if is_flagged(file, "before_update"))
        if not command.is_read_only:
            withdraw_requests()  # those of a command that was killed
            if workflow.non_local_exec:
                requested_markers().write(REQUESTED)
                atexit.register(withdraw_requests)  # also when Snakemake ends without `onerror`
    except LoadstoneError as error:
        raise WorkflowError(printable(str(error)))


def is_failed_job(record):
    """Whether Snakemake logs that a job has failed, as all do that are interrupted. Its log file has that too."""
    event, text = getattr(record, "event", None), str(record.msg)
    if event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR) or getattr(record, "exception", None) == "RuleException":
        return True
    return "At least one job did not complete successfully" in text or "a job execution failed" in text


def is_exit_code(record):
    """Whether Snakemake logs the exit code of a script of this workflow, which has said itself what failed."""
    ours, text = f'CalledProcessError in file "{RULES}/', str(record.msg)
    return ours in text and ".snakemake/scripts" in text and text.rstrip().endswith("returned non-zero exit status 1.")


def requested_markers():
    """The markers requested by this command, for its jobs on other machines."""
    tables = {"/".join(key): tables_marker(key) for key in SNAPSHOT.listings}
    traces = {name: SNAPSHOT.traces_marker(dump) for name, dump in SNAPSHOT.dumps.items()}
    return markers.Requested(os.environ[markers.VARIABLE], tables, traces, inventory(None), SITE.requested)


def withdraw_requests():
    """Let no job of a scheduler start or go on any more."""
    REQUESTED.unlink(missing_ok=True)


def end_command(success):
    for command in COMMANDS:
        try:
            if not command.is_read_only:
                withdraw_requests()
            command.end(success=success)
        except LoadstoneError as error:
            raise WorkflowError(str(error))


def preview_of(target):
    """Show what a command would do, in a dry run of it."""

    def preview(wildcards):
        if workflow.dryrun:
            show_preview(target, named_targets(), DECLARED.config, logger.info, logger.error)

    return preview


def keep_handlers(handlers):
    """Run these in a module too: Snakemake runs only those of the main Snakefile, which come after these."""
    if not IS_MODULE:
        return
    if workflow.modifier.path_modifier.prefix or workflow.modifier.path_modifier.modifies_prefixes:
        raise WorkflowError("this module takes no `prefix`: set `archive`, `tables` and `reports` in its configuration")
    for name, ours in handlers.items():

        def keep(theirs, name=f"_{name}", ours=ours):
            setattr(workflow, name, lambda log: (ours(), theirs(log)))

        def register(theirs, keep=keep):
            if workflow.modifier.is_main_snakefile():
                keep(theirs)

        keep(getattr(workflow, f"_{name}"))
        setattr(workflow, name, register)


keep_handlers(
    {
        "onstart": start_command,
        "onsuccess": lambda: end_command(success=True),
        "onerror": lambda: end_command(success=False),
    }
)


# --- collecting ---


def every_core(wildcards):
    """The number of cores; 1 for `--report`, which has none."""
    return workflow.resource_settings.cores or 1


def attacking():
    return not workflow.remote_exec and may_attack(named_targets())


def refuse_remote():
    """Rules that attack are local rules, but if the user puts them into a group, they run on other machines.

    Rules of a workflow that uses this one as a module may ask for runs too, but the target would not be restored after them.
    """
    if workflow.remote_exec:
        raise WorkflowError("only the machine on which the command was given may attack: put its rules into no group")
    if IS_MODULE and not attacking():
        raise WorkflowError(f"collect missing runs first: `snakemake {PREFIX}attacks{SUFFIX}`")


def key_of(wildcards):
    return wildcards.app, wildcards.host, wildcards.timestamp


def cluster_to_put_back(wildcards):
    """The marker that requests to restore a cluster left changed by an earlier command. Runs wait for that anyway."""
    return [SNAPSHOT.put_back_marker()] if is_cluster_to_put_back(DECLARED) else []


def completions(wildcards):
    """The completion markers of all open campaigns of this host."""
    return [SNAPSHOT.completion_marker(key) for key in SNAPSHOT.missing]


def missing_runs(wildcards):
    """The markers of the missing runs of one open campaign."""
    refuse_remote()
    return SNAPSHOT.run_markers(key_of(wildcards))


def rank(wildcards):
    """Priorities in the order of the plan, above those of completions (1) and of all other rules (0)."""
    refuse_remote()
    run = (*key_of(wildcards), wildcards.rate, wildcards.variant, int(wildcards.run))
    return 1 + SNAPSHOT.ranks.get(run, 0)


# --- tables ---


def tables_marker(key):
    """The marker of a campaign's tables, existing or requested."""
    return SNAPSHOT.tables_marker(key, pending=attacking() and key in SNAPSHOT.missing)


def collected_first(wildcards):
    """The completion marker that a campaign's tables wait for, if this command may attack."""
    key = key_of(wildcards)
    return [SNAPSHOT.completion_marker(key)] if attacking() and key in SNAPSHOT.missing else []


def collected_before(wildcards):
    """The same after it was collected. With fewer inputs than before, the rule would run again."""
    if workflow.remote_exec or collected_first(wildcards):
        return []
    return [marker for marker in [SNAPSHOT.last_completion(key_of(wildcards))] if marker]


def converted(wildcards):
    return tables_marker(key_of(wildcards))


def converted_dumps(wildcards):
    return [SNAPSHOT.traces_marker(dump) for dump in SNAPSHOT.dumps.values()]


def inventory(wildcards):
    """The marker of the database's contents, existing or requested: an output of the rule database."""
    return SNAPSHOT.inventory_marker(list(DECLARED.compared))


def analysed_tables(keys, tables=ANALYSED):
    parts = [PART.format(app=app, host=host, timestamp=timestamp) for app, host, timestamp in keys]
    return [f"<tables>/{table}/{part}" for part in parts for table in tables]


def analysed(wildcards):
    """The outputs of `analyse` for every campaign."""
    return analysed_tables(SNAPSHOT.listings)


def compared(wildcards):
    """The outputs of `compare` for every comparison with a campaign in the archive."""
    return [f"<tables>/{table}/{name}.parquet" for name in DECLARED.compared for table in COMPARED]


def every_table(wildcards):
    """All tables and their sources. Targets list them all, because Snakemake only checks there whether one is
    missing."""
    sources = [*map(tables_marker, SNAPSHOT.listings), *converted_dumps(wildcards), inventory(wildcards)]
    return [*sources, *analysed(wildcards), *compared(wildcards), HISTORY, "<database>"]


def tables_to_push(wildcards):
    """The tables, unless the configuration excludes them from pushes."""
    return every_table(wildcards) if config.get("storage", {}).get("tables", True) else []


def dump_fields(wildcards):
    return SNAPSHOT.dumps[wildcards.dump].fields()


def campaign_declarations(wildcards):
    return DECLARED.of_campaign(key_of(wildcards))


def settings(wildcards):
    return DECLARED.settings_of_campaign(key_of(wildcards))


# --- comparisons ---


def comparison(wildcards):
    try:
        return DECLARED.comparison(wildcards.comparison)
    except LoadstoneError as error:
        raise WorkflowError(str(error))


def campaigns_compared(wildcards):
    comparison(wildcards)
    return [list(key) for key in DECLARED.campaigns_of(wildcards.comparison)]


def tables_compared(wildcards):
    """The tables of runs and cells for one comparison."""
    return analysed_tables(campaigns_compared(wildcards), ["runs", "cells"])


def settings_of_comparison(wildcards):
    return DECLARED.settings(comparison(wildcards)["app"])


def appearance_of_comparison(wildcards):
    return DECLARED.appearance(DECLARED.campaigns_of(wildcards.comparison))


# --- pages ---


def campaign_of_page(wildcards):
    if wildcards.slug not in SNAPSHOT.slugs:
        raise WorkflowError(f"no campaign has the page {wildcards.slug}")
    return SNAPSHOT.slugs[wildcards.slug]


def key_of_page(wildcards):
    return list(campaign_of_page(wildcards))


def tables_of_page(wildcards):
    """The tables of runs and cells for one page."""
    return analysed_tables([campaign_of_page(wildcards)], ["runs", "cells"])


def catalogue_of_page(wildcards):
    return DECLARED.catalogue_entry(campaign_of_page(wildcards))


def appearance_of_page(wildcards):
    return DECLARED.appearance([campaign_of_page(wildcards)])


def dump_of_page(wildcards):
    if wildcards.slug not in DUMPS:
        raise WorkflowError(f"no trace dump has the page {wildcards.slug}")
    return DUMPS[wildcards.slug].fields()


def converted_dump_of_page(wildcards):
    dump_of_page(wildcards)
    return SNAPSHOT.traces_marker(DUMPS[wildcards.slug])


def result_pages(wildcards):
    """The page of every campaign, comparison and trace dump."""
    names = [f"campaigns/{slug}" for slug in SNAPSHOT.slugs]
    names += [f"comparisons/{name}" for name in DECLARED.compared]
    return [f"<reports>/{name}.html" for name in (*names, *(f"traces/{slug}" for slug in DUMPS))]


def site(wildcards):
    """All pages. Targets list them all, as for tables."""
    pages = [*result_pages(wildcards), *(f"<reports>/{page}" for page in PAGES_OF_INDEX)]
    return [*pages, *rebuild_markers(wildcards)]


def figures_of_pages(wildcards):
    """The folders of figures of all pages with charts."""
    return [f"<reports>/figures/{page}" for page in DECLARED.pages_with_charts]


def summary_sheets(wildcards):
    """The sheets of all campaigns and comparisons with results."""
    pages = [page for page in DECLARED.pages_with_charts if not page.startswith("variants/")]
    return [f"<reports>/summaries/{page}.pdf" for page in pages]


def figures_drawn(wildcards):
    """The existing ones, brought up to date with their pages, to publish or bundle them."""
    parts = [f"figures/{page}" for page in DECLARED.pages_drawn]
    return [*(f"<reports>/{part}" for part in parts), *(name for part in parts for name in part_markers(part))]


def figures_reported(wildcards):
    """For Snakemake's own report: the existing figures, because it runs no jobs; after a run, all figures."""
    if not any(argument == "--report" or argument.startswith("--report=") for argument in sys.argv):
        return []
    pages = DECLARED.pages_with_charts if "--report-after-run" in sys.argv else DECLARED.pages_drawn
    return [f"<reports>/figures/{page}" for page in pages]


def packages(wildcards):
    """The folder where `make ask` installed DuckDB for browsers, or None. Its checksum is part of the path."""
    installed = CHECKOUT / ".tools/duckdb-wasm"
    return str(installed.resolve()) if installed.is_dir() else None


# --- rebuilding of parts of the site with missing files (loadstone/report/site_layout.py) ---


def part_markers(part):
    """Empty unless the part was rebuilt before; if a file is missing, a name that does not exist yet."""
    if SNAPSHOT.requested:
        return SNAPSHOT.requested.parts.get(part, [])
    if part in PARTS_OF_INDEX:
        return SITE.markers(part, *PAGES_OF_INDEX)
    return SITE.markers(part, part if part.startswith("figures/") else f"{part}.html")


def rebuild_marker(part):
    """An input of the rule that builds this part, independent of mtimes and Snakemake's records."""

    def names(wildcards):
        return part_markers(part.format(**dict(wildcards.items())))

    return names


def rebuild_markers(wildcards):
    """The same for all parts. Targets list them all, as for pages."""
    parts = [page.removeprefix("<reports>/").removesuffix(".html") for page in result_pages(wildcards)]
    return [name for part in (*parts, *PARTS_OF_INDEX) for name in part_markers(part)]


def rebuild_markers_of_figures(wildcards):
    """The same for the figures of pages."""
    return [name for page in DECLARED.pages_with_charts for name in part_markers(f"figures/{page}")]
