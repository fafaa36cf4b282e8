"""What the rules share: the checked configuration, the state of archive and tables, and functions that name inputs.

No rule is defined here; functions are here, in dumps.smk, outside.smk and lost.smk, and in no other rule file. No file of
the archive is ever an input or output of a rule: Snakemake removes outputs before jobs and after failures. See
scripts/loadstone/workflow/state.py for the names under which work is asked for.
"""

import os
import sys
import uuid
from collections import UserDict
from pathlib import Path

import loadstone
from loadstone.workflow import plan as planned
from loadstone.config import comparisons as comparing
from loadstone import config as configuration
from loadstone.config.catalogue import load_catalogue
from loadstone.collect.targets.kubernetes import session
from loadstone.workflow.command import JOURNAL, Command, bring_to_now, check_folder, has_cluster, may_attack
from loadstone.errors import LoadstoneError, printable
from loadstone.report import navigation, output
from loadstone.report.slugs import variant_slug
from loadstone.workflow.state import State, key_of
from loadstone.tables import VERSION as TABLES_VERSION
from loadstone.tables.layout import campaign_key
from loadstone.tables.layout import text as name_text
from loadstone.tables.layout import database_of
from loadstone.tables.schema import ANALYSED, COMPARED
from snakemake.io import is_flagged

# Snakemake would load it, if it can, only to see whether a parameter is a data frame: about a tenth of a small command's time.
sys.modules.setdefault("pandas", None)

SAID = []
PLAN = Path(".snakemake/loadstone.plan.json")
KEY = "{app}/{host}/{timestamp}"
HISTORY = "<tables>/history/part.parquet"
PART = "app={app}/host={host}/timestamp={timestamp}/part.parquet"
SHARED = [f"<reports>/assets/{name}" for name in ("vega.js", *output.shared_assets())]
PAGES_OVER_ALL = [f"<reports>/{name}" for name in navigation.OVER_ALL]


def plan():
    """In a job on another machine, what its command has planned."""
    if workflow.remote_exec:
        return planned.read(PLAN, os.environ.get(planned.VARIABLE))
    os.environ[planned.VARIABLE] = str(uuid.uuid4())
    return None


def load_comparisons():
    """What is compared with what, by id; or one clear error."""
    try:
        return {comparison.id: comparison for comparison in comparing.load()}
    except LoadstoneError as error:
        raise WorkflowError(str(error))


def load(config):
    """The checked configuration, variants, catalogue, the tags that exclude, and the state; or one clear error."""
    try:
        check_folder()
        checked = configuration.check(config)
        catalogue = load_catalogue()
        return (
            checked,
            configuration.load_variants(),
            catalogue,
            catalogue.excluding(checked["tags"]),
            State(checked, Path("results/.collected"), plan()),
        )
    except LoadstoneError as error:
        raise WorkflowError(str(error))


config, VARIANTS, CATALOGUE, EXCLUDING, STATE = load(config)
COMPARISONS = load_comparisons()
FOLDERS = {name: config[name] for name in ("archive", "tables", "reports")}
# It holds credentials, and Snakemake writes parameters of a job that are a dict, a list or a text into .snakemake.
SWEEP = UserDict(
    target=config.get("target", {}),
    host=config["host"],
    limits=configuration.limits(config),
    journal=JOURNAL,
    script=config.get("sweep", {}).get("script"),
)
PAGE = config.get("report", {}) | {"confidence": config["analysis"]["confidence"]}
PROGRESS = {
    "variants": VARIANTS.declared,
    "options": config.get("report", {}),
    "ready_timeout": config.get("target", {}).get("ready_timeout"),
}


COMMANDS = []


def start_command():
    """Before the first job."""
    targets = set(workflow.dag_settings.targets)
    log = {"log": logger.info, "complain": logger.error}
    command = Command(config, STATE, targets, progress=PROGRESS, touch=workflow.touch, **log)
    COMMANDS.append(command)
    try:
        command.start()
        bring_to_now(file for job in workflow.dag.jobs for file in job.output)
        bring_to_now(file for job in workflow.dag.jobs for file in job.input if is_flagged(file, "before_update"))
        if "gate" in targets and not workflow.touch:
            Path(config["reports"], navigation.GATE).unlink(missing_ok=True)  # nobody may take it for this one's
        if workflow.non_local_exec:
            planned_here().write(PLAN)
    except LoadstoneError as error:
        raise WorkflowError(printable(str(error)))


def planned_here():
    """The names under which this command asks for tables, for its jobs on other machines."""
    done = {"/".join(key): STATE.done(key, pending=attacking() and key in STATE.lacking) for key in STATE.listings}
    traced = {key: STATE.traced(dump) for key, dump in DUMPS.items()}
    return planned.Plan(os.environ[planned.VARIABLE], done, traced, inventory(None), SITE.asked)


def end_command(success):
    """After the last job."""
    for command in COMMANDS:
        try:
            command.end(success=success)
        except LoadstoneError as error:
            raise WorkflowError(str(error))


def left_behind(wildcards):
    """The marker under which a cluster that an earlier invocation left changed is put back; runs wait for that anyway."""
    if not has_cluster(config) or any(STATE.lacking.values()) or not session.has_records():
        return []
    return [STATE.put_back()]


def key(wildcards):
    return wildcards.app, wildcards.host, wildcards.timestamp


def part(campaign):
    """Where a table keeps the rows of one campaign."""
    return PART.format(app=campaign[0], host=campaign[1], timestamp=campaign[2])


def every_core(wildcards):
    """All that there are; `--report` is given without a number of cores."""
    return workflow.resource_settings.cores or 1


def attacking():
    return not workflow.remote_exec and may_attack(set(workflow.dag_settings.targets))


def refuse_elsewhere():
    """Rules that attack are local; a group that a user puts them into would take them along to other machines."""
    if workflow.remote_exec:
        raise WorkflowError("only the machine on which the command was given may attack: put its rules into no group")


def completions(wildcards):
    """Every open campaign of this host, completed."""
    return [STATE.completion(campaign) for campaign in STATE.lacking]


def collections(wildcards):
    """The missing runs of one open campaign."""
    refuse_elsewhere()
    lacking = STATE.lacking.get(key(wildcards), [])
    return [STATE.collection(planned) for planned in lacking]


def collected_first(wildcards):
    """What must be collected before a campaign's tables are made, if anything may be."""
    if attacking() and key(wildcards) in STATE.lacking:
        return [STATE.completion(key(wildcards))]
    return []


def collected_before(wildcards):
    """The same once it was: a rule whose inputs become fewer is run again."""
    if workflow.remote_exec or collected_first(wildcards):
        return []
    return [marker for marker in [STATE.completed(key(wildcards))] if marker]


def collection_rank(wildcards):
    """The plan's order; before the ends of campaigns (1) and all that only looks at what was collected (0)."""
    refuse_elsewhere()
    return 1 + STATE.rank(key(wildcards), wildcards.rate, wildcards.variant, int(wildcards.run))


def converted(wildcards):
    """The record of one campaign's converted results, as they are or as they will be."""
    campaign = key(wildcards)
    pending = attacking() and campaign in STATE.lacking
    return STATE.done(campaign, pending=pending)


def every_table(wildcards):
    """All that stands for tables, and what they were made from. Targets name it, since Snakemake looks only there for
    what is missing."""
    campaigns = [STATE.done(key, pending=attacking() and key in STATE.lacking) for key in STATE.listings]
    made_from = [*campaigns, *traced(wildcards), inventory(wildcards)]
    return [*made_from, *analysed(wildcards), *compared(wildcards), HISTORY, "<database>"]


def analysed(wildcards):
    """What `analyse` writes of every campaign."""
    return [f"<tables>/{table}/{part(campaign)}" for campaign in STATE.listings for table in ANALYSED]


def pages(wildcards):
    """The page of every campaign."""
    return [f"<reports>/campaigns/{slug}.html" for slug in STATE.slugs]


def analysed_of_slug(wildcards):
    """The runs and cells behind one page."""
    if wildcards.slug not in STATE.slugs:
        raise WorkflowError(f"no campaign has the page {wildcards.slug}")
    campaign = STATE.slugs[wildcards.slug]
    return [f"<tables>/{table}/{part(campaign)}" for table in ("runs", "cells")]


def campaign_of_slug(wildcards):
    return list(STATE.slugs[wildcards.slug])


def named(campaign):
    """A campaign of the archive as tables and catalogue name it."""
    return tuple(campaign_key(STATE.listing(campaign).campaign).values())


def known(wildcards):
    """What people say of one campaign, and what they count as late: a word about another one touches none of its tables."""
    names = named(key(wildcards))
    about = {"folders": VARIANTS.folders(names[0]), "lag_limit": configuration.lag_limit(config)}
    return CATALOGUE.about(names, EXCLUDING) | about


def settings_of(app):
    """What conclusions about an app's variants depend on besides its tables."""
    analysis = config["analysis"]
    return {
        "margin": configuration.share(analysis["margin"]),
        "confidence": analysis["confidence"],
        "order": list(VARIANTS.declared.get(app, {})),
        "over": {name: list(over) for name, over in VARIANTS.over(app).items()},
    }


def settings_of_history(wildcards):
    return {name: settings_of("")[name] for name in ("margin", "confidence")}


def settings(wildcards):
    """The same of one campaign."""
    return settings_of(named(key(wildcards))[0])


def settings_of_comparison(wildcards):
    return settings_of(declaration(wildcards)["app"])


def catalogued_of_slug(wildcards):
    """The catalogue's entry of one page's campaign."""
    return CATALOGUE.entry(named(STATE.slugs[wildcards.slug]))


def purposes(wildcards):
    """What each campaign of the archive was for, as far as the catalogue says: its key, then the words."""
    names = map(named, STATE.listings)
    return [[*name, CATALOGUE.entry(name)["purpose"]] for name in names if CATALOGUE.entry(name)]


def notes(wildcards):
    """The same with the catalogue's notes, as annotations of the archive's history."""
    entries = ((name, CATALOGUE.entry(name)) for name in map(named, STATE.listings))
    return [[*name, " ".join([entry["purpose"], *entry.get("notes", ())])] for name, entry in entries if entry]


def not_in_archive(wildcards):
    """What the catalogue says of campaigns that the archive does not hold."""
    return CATALOGUE.absent([named(campaign) for campaign in STATE.listings])


def archive_keys(wildcards):
    return [list(campaign) for campaign in STATE.listings]


def declaration(wildcards):
    """What config/comparisons.yaml says of one comparison."""
    if wildcards.comparison not in COMPARISONS:
        raise WorkflowError(f"config/comparisons.yaml declares no comparison {wildcards.comparison}")
    return comparing.to_config(COMPARISONS[wildcards.comparison])


def campaigns_compared(comparison):
    """Those of its campaigns that the archive holds."""
    named = map(key_of, COMPARISONS[comparison].campaigns(STATE.root))
    return [campaign for campaign in named if campaign in STATE.listings]


def campaigns_of_comparison(wildcards):
    declaration(wildcards)
    return [list(campaign) for campaign in campaigns_compared(wildcards.comparison)]


def analysed_of_comparison(wildcards):
    """The runs and cells behind one comparison."""
    declaration(wildcards)
    campaigns = campaigns_compared(wildcards.comparison)
    return [f"<tables>/{table}/{part(campaign)}" for campaign in campaigns for table in ("runs", "cells")]


def compared(wildcards):
    """What `compare` writes of every comparison of any campaign that the archive holds."""
    names = comparisons_made(wildcards)
    return [f"<tables>/{table}/{name}.parquet" for name in names for table in COMPARED]


def comparison_pages(wildcards):
    """The page of each of them."""
    return [f"<reports>/comparisons/{name}.html" for name in COMPARISONS if campaigns_compared(name)]


def variants_held():
    """App and variant of everything that the archive holds, by the name of its page."""
    cells = {(item.campaign.app, cell.cell.variant_dir) for item in STATE.listings.values() for cell in item.cells}
    names = {(name_text(app), name_text(VARIANTS.canonical(app, folder))) for app, folder in cells}
    declared = {app: list(variants) for app, variants in VARIANTS.declared.items()}

    def order(name):
        app, variant = name
        return app, declared[app].index(variant) if variant in declared.get(app, ()) else len(cells), variant

    return {variant_slug(*name): name for name in sorted(names, key=order)}


VARIANT_SLUGS = variants_held()


def whole_site(wildcards):
    """Every page, and what all of them share. Targets name it as they name every table."""
    single = [*pages(wildcards), *comparison_pages(wildcards), *trace_pages(wildcards), *variant_pages(wildcards)]
    return [*single, *PAGES_OVER_ALL, "<reports>/ask.html", *SHARED, *lost_of_site(wildcards)]


def variant_pages(wildcards):
    """The page of every variant through time, and the list of them."""
    return ["<reports>/variants.html", *(f"<reports>/variants/{slug}.html" for slug in VARIANT_SLUGS)]


def figures_of_pages(wildcards):
    """The figures of every page that has charts."""
    found = [("campaigns", slug) for slug in STATE.slugs]
    found += [("comparisons", name) for name in COMPARISONS if campaigns_compared(name)]
    found += [("variants", slug) for slug in VARIANT_SLUGS]
    return [f"<reports>/figures/{kind}/{slug}" for kind, slug in found]


def figures_drawn(wildcards):
    """Those of them that are there: what leaves this folder goes with the pages that it was drawn from."""
    folders = figures_of_pages(wildcards)
    drawn = [folder for folder in folders if Path(folder.replace("<reports>", config["reports"])).is_dir()]
    return [*drawn, *(name for folder in drawn for name in asked_again(folder.removeprefix("<reports>/")))]


def comparisons_made(wildcards):
    return [name for name in COMPARISONS if campaigns_compared(name)]


def campaigns_by_comparison(wildcards):
    """Every comparison with the campaigns that the archive holds of it."""
    return {name: [list(key) for key in campaigns_compared(name)] for name in comparisons_made(wildcards)}


def candidates(wildcards):
    """The complete campaigns of the archive, of which the gate judges one of each app and host."""
    by_hand = [key for key in STATE.listings if CATALOGUE.entry(named(key)).get("completion_file") is False]
    return [list(key) for key in STATE.listings if STATE.listing(key).campaign.is_completed or key in by_hand]


def inventory(wildcards):
    """The record of what the database shows, as it is or as it will be."""
    return STATE.inventory(comparisons_made(wildcards), sorted(DUMPS))


def held(wildcards):
    """What stands in that record."""
    return STATE.holding(comparisons_made(wildcards), sorted(DUMPS))


# --- asking the tables in a browser ----------------------------------------------------------------------------------


def packages(wildcards):
    """Where `make ask` has put DuckDB for browsers; None where it did not. Its checksum is part of the path."""
    installed = Path(workflow.basedir, ".tools/duckdb-wasm")
    return str(installed.resolve()) if installed.is_dir() else None
