"""What the rules share about what lies outside archive, tables and pages: sources, destinations, Snakemake's report."""

import json
import subprocess

from loadstone.publish.site import settings as declared_destination


def archive_to_import_into(wildcards):
    """The archive. A dry run also says what would be copied into it, or why not; the import itself does so too."""
    if workflow.dryrun:
        from loadstone.importing import plan  # only here: it loads Arrow

        try:
            lines = plan.make(Path(config["archive"])).lines()
        except LoadstoneError as error:
            logger.error(printable(str(error)))
            raise SystemExit(1)  # anything else would show a traceback
        logger.info("\n".join(map(printable, ["Would import into the archive:", *lines])))
    return config["archive"]


def destination_declared(wildcards):
    """Nothing; but what can't be published is told before the site is made, and a dry run says what would be."""
    try:
        to = declared_destination.destination(config.get("publish"))
        if workflow.dryrun and "publish" not in SAID:
            from loadstone.publish.site import publish  # only here: most commands don't publish

            lines = publish.preview(Path(config["reports"]), to, keep=config["publish"].get("keep"))
            SAID.append("publish")
            logger.info("\n".join(map(printable, ["Would publish the site as it is now:", *lines])))
    except LoadstoneError as error:
        logger.error(printable(str(error)))
        raise SystemExit(1)  # anything else would show a traceback
    return []


def storage_declared(command):
    """Nothing; but what can't be pushed or pulled is told before anything is made, and a dry run says what would be."""
    from loadstone.publish.bucket import pull, push, store  # only here: most commands need no bucket

    preview = {"push": push.preview, "pull": pull.preview}[command]
    try:
        with store.opened(config.get("storage")) as place:
            place.listing(store.PUSHING)
        if workflow.dryrun and command not in SAID:
            lines = preview(Path(config["archive"]), Path(config["tables"]), config["storage"])
            SAID.append(command)
            logger.info("\n".join(map(printable, [f"Would {command} the archive as it is now:", *lines])))
    except LoadstoneError as error:
        logger.error(printable(str(error)))
        raise SystemExit(1)  # anything else would show a traceback
    return []


def pushed(wildcards):
    """The tables, unless the configuration keeps them here."""
    storage_declared("push")
    return every_table(wildcards) if config["storage"].get("tables", True) else []


def pulled_alone(wildcards):
    """Nothing. Other targets of the same command would know nothing of what comes, and might collect it again."""
    if set(workflow.dag_settings.targets) != {"pull"}:
        raise WorkflowError("`pull` is a command of its own: give other targets after it")
    return storage_declared("pull")


def pictures_reported(wildcards):
    """The figures of all pages, for Snakemake's own report (--report). It runs no job, so another command draws them."""
    if not any(argument == "--report" or argument.startswith("--report=") for argument in sys.argv):
        return []
    if "--report-after-run" not in sys.argv and "figures" not in SAID:
        SAID.append("figures")
        logger.info("The report holds the figures of all pages; `figures` brings them up to date:")
        settings = workflow.config_settings
        files = ["--configfile", *map(str, settings.configfiles)] if settings.configfiles else []
        given = [f"{name}={json.dumps(value)}" for name, value in settings.config.items()]
        command = [sys.executable, "-m", "snakemake", "--snakefile", workflow.main_snakefile, "--cores", "all"]
        command += [*files, *(["--config", *given] if given else []), "--", "figures"]
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
            raise WorkflowError("the figures could not be drawn")
    return figures_of_pages(wildcards)
