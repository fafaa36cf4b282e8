"""Faults that break what tests/README.md promises of upgrades, other machines, releases and documents."""

from mutants.mutant import Mutant

MUTANTS = {
    "The same archive gives the same bytes": (
        Mutant(
            "intervals are drawn with a seed that follows from the data's names",
            "np.random.default_rng(runs_seed)",
            "np.random.default_rng()",
            ("workflow/test_reproducible.py::test_tables_pages_and_figures_are_the_same_to_the_byte",),
        ),
        Mutant(
            "blocks are drawn with a seed that follows from the data's names",
            "np.random.default_rng(blocks_seed)",
            "np.random.default_rng()",
            ("analysis/test_campaign.py::test_the_same_data_give_the_same_intervals",),
        ),
    ),
    "A bundle is accepted elsewhere": (
        Mutant(
            "each file of a bundle is compared with its checksum",
            '        _refuse(path, "was altered", [name for name in sums if _sha256(bundle, '
            "infos[name]) != sums[name]])\n",
            "",
            ("publish/bundle/test_bundle.py::test_an_altered_file_is_named_although_the_zip_fits",),
        ),
    ),
    "Result pages can be cited": (
        Mutant(
            "a crate has the date of its publication",
            '        "datePublished": published,\n',
            "",
            ("report/test_crate.py::test_the_specification_is_met",),
        ),
    ),
    "Tables of older versions are rebuilt": (
        Mutant(
            "the version of the tables is part of what a cell was made with",
            'if [content["version"], content.get("redact")] != [VERSION, redact.names().fields()]:',
            'if content.get("redact") != redact.names().fields():',
            ("tables/test_upgrades.py::test_an_older_version_is_made_again_and_gives_what_a_new_one_gives",),
        ),
    ),
    "Metadata version 5 is as published": (
        Mutant(
            "a text is no list of positions",
            "or any(isinstance(item, str) for item in value):\n",
            "or not value:\n",
            ("archive/test_metadata_schema.py::test_schema_and_reader_agree_at_every_edge",),
        ),
    ),
    "Slurm gives the same tables, and survives a machine's death": (
        Mutant(
            "a job on another machine ends with its command",
            "    _end_with_command()\n",
            "",
            ("workflow/test_job.py::test_on_another_machine_it_ends_with_its_command",),
        ),
    ),
    "So does Kubernetes": (
        Mutant(
            "a job elsewhere gets the id of its command, as a Secret",
            "envvars:\n    markers.VARIABLE,\n",
            "",
            ("scheduler/test_kubernetes.py::test_jobs_are_as_declared_and_their_commands_make_the_same_tables",),
            where="rules/common.smk",
        ),
    ),
    "A run costs the same in an archive of any size": (
        Mutant(
            "a cell whose files did not change is not read again",
            '    return f"changed: {_some(changed)}" if changed else ""\n',
            '    return f"changed: {_some(changed or list(now))}"\n',
            ("tables/test_convert.py::test_a_new_run_reads_its_cell_alone",),
        ),
    ),
    "Pulling from a bucket gives the same archive and tables": (
        Mutant(
            "records of failed attempts are part of a campaign",
            "        return name == archive.METADATA or _parsed(name) is not None\n",
            "        return name == archive.METADATA or (parsed := _parsed(name)) is not None and "
            "parsed.kind != 'failure'\n",
            ("publish/bucket/test_there_and_back.py::test_the_same_archive_is_elsewhere",),
        ),
    ),
    "A query of one campaign reads only that campaign": (
        Mutant(
            "views take the key of a campaign from the folders",
            "    app_dir AS app,\n"
            "    host_dir AS host,\n"
            "    timestamp_dir AS timestamp,\n"
            "    * EXCLUDE (app, host, timestamp, app_dir,",
            "    * EXCLUDE (app_dir,",
            ("tables/test_database.py::test_a_query_for_one_campaign_opens_no_other_file",),
            where="scripts/loadstone/sql/view.sql",
        ),
    ),
    "Several generators send what one sends": (
        Mutant(
            "request n is sent by generator n modulo their number",
            '    return int(measured + content["of"] - 1 - number) // int(content["of"])\n',
            '    return int(measured) // int(content["of"])\n',
            ("collect/test_several_generators.py::test_they_send_what_one_sends",),
        ),
    ),
    "As a module, commands are as safe as in a checkout": (
        Mutant(
            "what a command does before its first job is done in a module too",
            "    if not IS_MODULE:\n        return\n    if workflow.modifier.path_modifier.prefix",
            "    if IS_MODULE:\n        return\n    if workflow.modifier.path_modifier.prefix",
            ("workflow/test_module.py::test_what_a_command_does_before_its_first_job_is_done_for_a_module_too",),
            where="rules/common.smk",
        ),
    ),
    "snakedeploy deploys it": (
        Mutant(
            "the workflow in its folder has the default target of the Snakefile that it includes",
            'workflow.default_target = workflow.modifier.modify_rulename("all")\n',
            "",
            ("workflow/test_deployed.py::test_it_measures_and_reports",),
            where="workflow/Snakefile",
        ),
    ),
    "What set-up downloads is pinned by digest": (
        Mutant(
            "pip installs only what has the pinned digest",
            "--no-input --require-hashes -r envs/uv.txt",
            "--no-input -r envs/uv.txt",
            ("toolchain/test_components.py::test_setup_downloads_nothing_without_a_digest",),
            where="envs/setup.sh",
        ),
    ),
    "Licenses of all components are known": (
        Mutant(
            "a license is an expression of SPDX",
            "  altair: BSD-3-Clause\n",
            "  altair: BSD 3-Clause License\n",
            ("toolchain/test_components.py::test_every_component_has_a_license_that_exists",),
            where="envs/licenses.yaml",
        ),
    ),
    "The version can be released": (
        Mutant(
            "all files name one version",
            '    "codemeta.json": (r\'^  "version": "\', \'",?$\'),\n',
            '    "codemeta.json": (r\'^  "softwareVersion": "\', \'",?$\'),\n',
            ("toolchain/test_release.py::test_all_files_name_one_version",),
            where="envs/metadata.py",
        ),
    ),
    "Examples work": (
        Mutant(
            "keys of examples are those of the schema",
            '"cannot_tell":',
            '"inconclusive":',
            ("docs/test_examples.py::test_a_yaml_example_is_valid",),
            where="scripts/loadstone/config/schemas/config.schema.json",
        ),
        Mutant(
            "an example names options that the executor of its profile has",
            "--kubernetes-shared-persistent-volumes results:/data\n",
            "--kubernetes-shared-volumes results:/data\n",
            ("docs/test_commands.py::test_a_command_of_an_example_can_be_given",),
            where="docs/schedulers.md",
        ),
    ),
    "The documents' site has no dead link": (
        Mutant(
            "a link leads to a heading that is there",
            "](bundles.md#reproducible-bytes)",
            "](bundles.md#the-same-bytes)",
            ("docs/test_examples.py::test_links_lead_somewhere",),
            where="docs/guarantees.md",
        ),
    ),
    "Every key is explained": (
        Mutant(
            "a key of the schema is in the documents",
            "`lease_duration`",
            "The Lease's duration",
            ("docs/test_examples.py::test_every_key_is_explained",),
            where="docs/kubernetes.md",
        ),
    ),
    "Every column is explained": (
        Mutant(
            "the document follows the schema",
            "  expected_requests: BIGINT · rate x duration\n",
            "  expected_requests: BIGINT · rate times duration\n",
            ("docs/test_dictionary.py::test_the_document_is_what_is_generated",),
            where="scripts/loadstone/tables/columns.yaml",
        ),
    ),
}
