"""What the rules share: the checked configuration, the state of archive and tables, and functions that name inputs.

No rule is defined here, and no function in another rule file. No file of the archive is ever an input or output of
a rule: Snakemake removes outputs before jobs and after failures. See scripts/loadstone/state.py for the names under
which work is asked for.
"""

from pathlib import Path

import loadstone
from loadstone import archive, dumps
from loadstone import comparisons as comparing
from loadstone import config as configuration
from loadstone.catalogue import load_catalogue
from loadstone.collect.kubernetes import session
from loadstone.errors import LoadstoneError
from loadstone.journal import Journal
from loadstone.lock import hold
from loadstone.report import progress_page
from loadstone.report.progress_page import ProgressPage
from loadstone.state import State, key_of
from loadstone.tables import VERSION as TABLES_VERSION
from loadstone.tables.layout import campaign_key
from loadstone.tables.owner import database_of

KEY = "{app}/{host}/{timestamp}"
PART = "app={app}/host={host}/timestamp={timestamp}/part.parquet"


def load_comparisons():
    """What is compared with what, by id; or one clear error."""
    try:
        return {comparison.id: comparison for comparison in comparing.load()}
    except LoadstoneError as error:
        raise WorkflowError(str(error))


def load(config):
    """The checked configuration, variants, catalogue, the tags that exclude, and the state; or one clear error."""
    try:
        checked = configuration.check(config)
        catalogue = load_catalogue()
        return (
            checked,
            configuration.load_variants(),
            catalogue,
            catalogue.excluding(checked["tags"]),
            State(checked, Path("results/.collected")),
        )
    except LoadstoneError as error:
        raise WorkflowError(str(error))


config, VARIANTS, CATALOGUE, EXCLUDING, STATE = load(config)
COMPARISONS = load_comparisons()
FOLDERS = {name: config[name] for name in ("archive", "tables", "reports")}
JOURNAL = "results/.collected/.sweep.jsonl"
SWEEP = {
    "target": config.get("target", {}),
    "host": config["host"],
    "limits": configuration.limits(config),
    "journal": JOURNAL,
}
PROGRESS = {
    "variants": VARIANTS.declared,
    "options": config.get("report", {}),
    "ready_timeout": config.get("target", {}).get("ready_timeout"),
}


def hold_folder():
    """One workflow at a time in this folder. Unlike Snakemake's own lock this one ends with its holder."""
    try:
        hold("snakemake", Path(".snakemake/loadstone.lock"))
    except LoadstoneError as error:
        raise WorkflowError(str(error))


def begin():
    """Say on the progress page that this command collects, or that an earlier one was killed."""
    journal, page = Journal(Path(JOURNAL)), ProgressPage(Path(config["reports"]), **PROGRESS, log=logger.info)
    progress_page.ended(journal, page)
    if attacking() and STATE.lacking:
        lacking = {STATE.listing(key).campaign: len(missing) for key, missing in STATE.lacking.items()}
        journal.begin(STATE.root, Path(config["reports"]), lacking)
        progress_page.begun(journal, page, STATE.root)


def end(how):
    """Say there how this command ended."""
    page = ProgressPage(Path(config["reports"]), **PROGRESS, log=logger.info)
    progress_page.ended(Journal(Path(JOURNAL)), page, how)


# --- the session on a cluster ----------------------------------------------------------------------------------------

SESSION = []


def open_session():
    """Before the first job: a keeper for the cluster, when this invocation may attack one or has one to put back."""
    if not has_cluster() or not attacking() or workflow.touch:
        return
    lacking = {run.cell.variant_dir for runs in STATE.lacking.values() for run in runs}
    needed = lacking & set(config["target"]["variants"])
    if needed or session.has_records():
        SESSION.append(session.start(config["target"], config["host"], needed, logger.info))


def close_session():
    """After the last job: wait until the cluster is as it was."""
    while SESSION:
        if code := SESSION.pop().finish():
            raise WorkflowError(f"the cluster needs your attention (code {code}): see above, and logs/cluster.log")


def has_cluster():
    return config.get("target", {}).get("kind") == "kubernetes"


def left_behind(wildcards):
    """The marker under which a cluster that an earlier invocation left changed is put back."""
    if not has_cluster() or not session.has_records():
        return []
    return [STATE.put_back()]


def key(wildcards):
    return wildcards.app, wildcards.host, wildcards.timestamp


def part(campaign):
    """Where a table keeps the rows of one campaign."""
    return PART.format(app=campaign[0], host=campaign[1], timestamp=campaign[2])


def attacking():
    """Only these targets, named by the user, may attack; everything else analyses what is there."""
    targets = workflow.dag_settings.targets
    return not targets or bool({"all", "attacks"} & set(targets))


def completions(wildcards):
    """Every open campaign of this host, completed."""
    return [STATE.completion(campaign) for campaign in STATE.lacking]


def collections(wildcards):
    """The missing runs of one open campaign."""
    lacking = STATE.lacking.get(key(wildcards), [])
    return [STATE.collection(planned) for planned in lacking]


def collected_first(wildcards):
    """What must be collected before a campaign's tables are made, if anything may be."""
    if attacking() and key(wildcards) in STATE.lacking:
        return [STATE.completion(key(wildcards))]
    return []


def collection_rank(wildcards):
    return STATE.rank(key(wildcards), wildcards.rate, wildcards.variant, int(wildcards.run))


def converted(wildcards):
    """The record of one campaign's converted results, as they are or as they will be."""
    campaign = key(wildcards)
    pending = attacking() and campaign in STATE.lacking
    return STATE.done(campaign, pending=pending)


def records(wildcards):
    """What all tables were made from. Targets name it too: when Snakemake's own records are lost, it looks only there
    for what is missing."""
    campaigns = [STATE.done(key, pending=attacking() and key in STATE.lacking) for key in STATE.listings]
    return [*campaigns, *traced(wildcards), inventory(wildcards)]


def analysed(wildcards):
    """The runs and cells of every campaign."""
    return [f"<tables>/{table}/{part(campaign)}" for campaign in STATE.listings for table in ("runs", "cells")]


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
    """What people say of one campaign: a word about another one touches none of its tables."""
    names = named(key(wildcards))
    return CATALOGUE.about(names, EXCLUDING) | {"folders": VARIANTS.folders(names[0])}


def catalogued_of_slug(wildcards):
    """The catalogue's entry of one page's campaign."""
    return CATALOGUE.entry(named(STATE.slugs[wildcards.slug]))


def purposes(wildcards):
    """What each campaign of the archive was for, as far as the catalogue says: its key, then the words."""
    names = map(named, STATE.listings)
    return [[*name, CATALOGUE.entry(name)["purpose"]] for name in names if CATALOGUE.entry(name)]


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
    """The rows of every comparison of any campaign that the archive holds."""
    return [f"<tables>/comparisons/{name}.parquet" for name in COMPARISONS if campaigns_compared(name)]


def comparison_pages(wildcards):
    """The page of each of them."""
    return [f"<reports>/comparisons/{name}.html" for name in COMPARISONS if campaigns_compared(name)]


def comparisons_made(wildcards):
    return [name for name in COMPARISONS if campaigns_compared(name)]


# --- trace dumps -----------------------------------------------------------------------------------------------------


def find_dumps():
    """Every trace dump of the archive by its name among derived files."""
    campaigns = (listing.campaign for listing in STATE.listings.values())
    owned = dumps.owners(CATALOGUE.entries)
    return {dump.key: dump for dump in dumps.find(STATE.root, campaigns, owned)}


DUMPS = find_dumps()
DUMP_SLUGS = {dump.slug: dump for dump in DUMPS.values()}


def traced(wildcards):
    """The record of every dump's rows, as they are or as they will be."""
    return [STATE.traced(dump) for dump in DUMPS.values()]


def dump_fields(wildcards):
    return DUMPS[wildcards.dump].fields()


def traced_dump(wildcards):
    """The rows behind one page."""
    if wildcards.slug not in DUMP_SLUGS:
        raise WorkflowError(f"no trace dump has the page {wildcards.slug}")
    return STATE.traced(DUMP_SLUGS[wildcards.slug])


def dump_of_slug(wildcards):
    return DUMP_SLUGS[wildcards.slug].fields()


def trace_pages(wildcards):
    return [f"<reports>/traces/{slug}.html" for slug in DUMP_SLUGS]


def inventory(wildcards):
    """The record of what the database shows, as it is or as it will be."""
    return STATE.inventory(comparisons_made(wildcards), sorted(DUMPS))


def held(wildcards):
    """What stands in that record."""
    return STATE.holding(comparisons_made(wildcards), sorted(DUMPS))


def every_dump(wildcards):
    return [dump.fields() for dump in DUMPS.values()]
