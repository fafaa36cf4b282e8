"""Faults that break the invariants of tests/README.md."""

from mutants.mutant import Mutant

MUTANTS = {
    "A run that is there is never collected again": (
        Mutant(
            "a collected run is never collected again",
            "        if run in archive.scan_cell(cell).collected():  # in whatever format\n",
            "        if False:\n",
            ("collect/test_collect_run.py::test_a_collected_run_is_left_alone",),
        ),
        Mutant(
            "results in any format, or on storage that is away, are collected",
            "        if run in archive.scan_cell(cell).collected():  # in whatever format\n",
            "        if cell.results(run).exists():\n",
            (
                "collect/test_collect_run.py::test_results_in_any_format_and_links_to_storage_that_is_away_count_as_collected",
            ),
        ),
    ),
    "Raw results are never changed or lost": (
        Mutant(
            "an existing name wins",
            "        os.link(staged, path)\n",
            "        os.replace(staged, path)\n",
            ("archive/test_durable.py::test_an_existing_name_wins",),
        ),
        Mutant(
            "files of results that were removed are set aside, never mixed with new ones",
            "if final.exists() and not final.samefile(file):",
            "if final.exists() and final.samefile(file):",
            ("collect/test_collect_run.py::test_leftovers_of_removed_results_are_set_aside",),
        ),
    ),
    "Only `all` and `attacks` attack": (
        Mutant(
            "only `all` and `attacks` may attack",
            "def may_attack(",
            "def may_attack(*_: object) -> bool:\n    return True\n\n\ndef _may_attack(",
            (
                "workflow/test_archive_safety.py::test_the_report_of_an_unfinished_sweep_attacks_nothing_and_says_what_is_missing",
            ),
        ),
    ),
    "Nothing is guessed": (
        Mutant(
            "a run may differ by one per cent from its plan, not more",
            "abs(requests - expected) <= max(TOLERANCE * expected,",
            "abs(requests - expected) <= max(10 * TOLERANCE * expected,",
            ("analysis/test_campaign.py::test_a_run_may_differ_by_one_percent",),
        ),
        Mutant(
            "a run whose requests repeat is excluded",
            "    if repeated:\n        found.append(",
            "    if False:\n        found.append(",
            ("analysis/test_campaign.py::test_repeated_numbers_exclude",),
        ),
    ),
    "Reasons of exclusion are codes with values": (
        Mutant(
            "a link to another run is told from a second run of its number",
            "found.append(Exclusion(LINKED, found=linked_to))",
            "found.append(Exclusion(SAME_NUMBER))",
            ("tables/test_exclusion_codes.py::test_each_code_has_a_text_and_no_other_code_excludes",),
        ),
    ),
    "Only comparable runs are pooled": (
        Mutant(
            "open and closed load are never pooled",
            "    if len(loads) > 1:\n",
            "    if len(loads) > 9:\n",
            ("tables/test_foreign.py::test_two_folders_of_one_variant_measured_in_other_ways_are_not_pooled",),
        ),
    ),
    "The cluster is restored": (
        Mutant(
            "all fields of a deployment are restored, not only its number of pods",
            "        for fields in (_others(changed), _replicas(changed)):\n",
            "        for fields in (_replicas(changed),):\n",
            ("workflow/test_cluster_safety.py::test_ended_by_a_signal_it_puts_back_before_it_ends",),
        ),
    ),
    "What was prepared is cleaned up": (
        Mutant(
            "what was prepared is cleaned up at the end",
            "                self._wait_for_job()\n                self._leave()\n",
            "                self._wait_for_job()\n",
            ("workflow/test_external.py::test_a_command_that_is_ended_while_it_prepares_cleans_up",),
        ),
        Mutant(
            "another variant is prepared only after the cleanup of the one before",
            '            return ""\n        self._leave()\n        declared',
            '            return ""\n        declared',
            ("workflow/test_external.py::test_each_variant_is_prepared_for_its_runs_and_cleaned_up",),
        ),
        Mutant(
            "a cleanup that failed stays recorded",
            "        check(running, code)\n\n\ndef restore",
            "\n\ndef restore",
            ("workflow/test_external.py::test_a_cleanup_that_fails_is_reported_and_tried_again_by_restore",),
        ),
    ),
    "Nothing that a run started outlives it": (
        Mutant(
            "nothing outlives a killed job",
            '        os.write(self._descriptor, b"%c%d\\n" % (b"*" if supervises else b"+", os.getpid()))\n',
            "        pass\n",
            ("test_process.py::test_nothing_outlives_a_killed_job_and_the_lock_waits_for_that",),
        ),
        Mutant(
            "nor does a daemon of its target",
            "        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)\n",
            "        pass\n",
            ("workflow/test_kill.py::test_a_daemon_of_the_target_ends_with_its_run",),
        ),
        Mutant(
            "nor does a program whose supervisor is killed",
            "            if last != ENDED and self.pid != self._process.pid:  # its supervisor was killed\n",
            "            if False:\n",
            ("test_process.py::test_a_program_whose_supervisor_is_killed_is_ended_too",),
        ),
        Mutant(
            "SIGTERM ends a job with all clean-up done",
            "        raise SystemExit(128 + number)\n\n    signal.signal(signal.SIGTERM, leave)",
            "        os._exit(128 + number)\n\n    signal.signal(signal.SIGTERM, leave)",
            ("workflow/test_job.py::test_sigterm_cleans_up",),
        ),
    ),
    "An interrupted command says how to go on": (
        Mutant(
            "jobs that an interruption ends are not shown as errors",
            "            handler.addFilter(lambda record: not (command.is_interrupted and is_failed_job(record)))\n",
            "            pass\n",
            ("workflow/test_kill.py::test_ctrl_c_leaves_nothing_running_and_says_how_to_go_on",),
            where="rules/common.smk",
        ),
    ),
    "Only listed hosts are attacked": (
        Mutant(
            "only hosts that are listed are attacked",
            "        if not is_allowed(host, allowed):\n            yield (\n",
            "        if False:\n            yield (\n",
            ("workflow/test_external.py::test_only_listed_hosts_and_this_machine_are_attacked",),
        ),
        Mutant(
            "redirects of an external target lead to listed hosts",
            '        return declared if self.redirect_hosts is None else declared | {"hosts": '
            "list(self.redirect_hosts)}\n",
            "        return declared\n",
            ("collect/test_redirects.py::test_a_redirect_elsewhere_is_a_failed_request",),
        ),
    ),
    "Requests go where they are declared to": (
        Mutant(
            "certificates are verified",
            "        if self.insecure:\n            context.check_hostname = False\n",
            "        if True:\n            context.check_hostname = False\n",
            ("collect/test_connections.py::test_an_error_names_the_key_to_set",),
        ),
        Mutant(
            "a declared address is the one that is connected to",
            "        host, port = self._to if (host, port) == self._name else (host, port)\n",
            "",
            (
                "collect/test_connections.py::test_a_private_authority_a_name_that_dns_does_not_know_and_its_own_certificate",
            ),
        ),
    ),
    "Private keys are written nowhere": (
        Mutant(
            "of keys and certificates only the file names are recorded",
            "    return {name: declared[name] for name in _KEYS if name in declared}\n",
            '    return Connection.of(declared, "").settings()\n',
            ("collect/test_connections.py::test_a_client_certificate_and_any_certificate_of_the_server",),
        ),
    ),
    "Credentials are stored nowhere": (
        Mutant(
            "what nobody else may read is never readable by them",
            "        temporary.chmod(mode)\n",
            "",
            ("archive/test_durable.py::test_what_nobody_else_may_read_is_never_readable_by_them",),
        ),
        Mutant(
            "credentials stand nowhere",
            "    return bool(_SECRET.search(name)) or names().has_header(name)\n",
            "    return False\n",
            ("collect/test_collect_run.py::test_a_credential_is_sent_and_stands_nowhere",),
        ),
        Mutant(
            "parameters of URLs are redacted",
            "        return self._parameter.sub(lambda found: found[1] + changed(found[2], found[3]), content)\n",
            "        return content\n",
            (
                "collect/test_collect_run.py::test_cookies_of_responses_and_parameters_of_urls_are_not_archived",
                "tables/test_failures.py::test_credentials_in_addresses_of_an_older_or_imported_archive_are_in_no_table",
            ),
        ),
        Mutant(
            "parameters of URLs within parameters are redacted",
            '|%3F|%26|%23|%3B)"',
            ')"',
            ("config/test_target.py::test_what_of_a_url_is_redacted",),
        ),
        Mutant(
            "users of URLs are redacted",
            "        content = _USER.sub(",
            "        _USER.sub(",
            ("config/test_target.py::test_users_in_addresses_are_not_archived",),
        ),
        Mutant(
            "users of URLs are redacted in what tools write",
            "            content, users = _USER_IN_BYTES.subn(",
            "            _, users = _USER_IN_BYTES.subn(",
            ("config/test_target.py::test_users_in_addresses_are_not_archived",),
        ),
        Mutant(
            "messages do not show what may be a credential",
            "    elif _may_be_secret(path):\n",
            "    elif False:\n",
            ("config/test_settings.py::test_what_may_be_a_credential_is_not_shown",),
        ),
        Mutant(
            "parameters with credentials are in nothing that Snakemake writes",
            "        return _inherited, (self._name, len(pieces))\n",
            "        return dict, (self.data,)\n",
            (
                "workflow/test_job.py::test_a_confidential_parameter_is_pickled_without_its_content_and_leaves_the_environment",
            ),
        ),
        Mutant(
            "equal credentials have equal marks, and marks tell nothing of them",
            "    digest = hashlib.pbkdf2_hmac(",
            "    return value\n    digest = hashlib.pbkdf2_hmac(",
            ("config/test_target.py::test_marks_tell_credentials_apart_and_not_what_they_are",),
        ),
    ),
    "An extension changes nothing that was measured": (
        Mutant(
            "a campaign is not extended on another machine",
            '    if differences and config["sweep"].get("extend") != ANYWAY:\n',
            "    if False:\n",
            ("workflow/test_extend.py::test_what_differs_is_refused_unless_declared",),
        ),
        Mutant(
            "further runs follow those that are there",
            "runs - needed[place] + 1, own, new.get(place))",
            "1, own, new.get(place))",
            (
                "workflow/test_extend.py::test_more_runs_a_variant_and_a_rate_are_measured_once_and_what_was_there_stays",
            ),
        ),
    ),
    "Runs of different protocols are not compared": (
        Mutant(
            "variants of different protocols are not compared",
            "    return Reason(reasons.PROTOCOLS_DIFFER) if len(protocols(series)) > 1 else None\n",
            "    return None\n",
            ("analysis/test_protocols.py::test_variants_of_different_protocols_have_no_verdict_unless_it_is_allowed",),
        ),
        Mutant(
            "runs of different protocols are not pooled",
            "    if len(protocols) > 1:\n        found.append(",
            "    if False:\n        found.append(",
            ("analysis/test_protocols.py::test_runs_of_several_protocols_in_one_cell_are_excluded",),
        ),
    ),
    "One attack at a time": (
        Mutant(
            "the lock of the machine is exclusive",
            "        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
            "        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)\n",
            ("workflow/test_exclusive.py::test_two_checkouts_never_attack_at_the_same_time",),
        ),
        Mutant(
            "a lock whose file was removed meanwhile is none",
            "        if not _same_file(descriptor, path):\n",
            "        if False:\n",
            ("test_process.py::test_a_lock_whose_file_a_cleaner_removes_is_taken_anew",),
        ),
        Mutant(
            "a lock is not opened through a link",
            "    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC\n",
            "    flags = os.O_RDWR | os.O_CLOEXEC\n",
            ("test_process.py::test_a_lock_is_not_opened_through_a_link",),
        ),
        Mutant(
            "a Lease is renewed",
            "        while not ended.wait(min(usual_s, _SHORTEST_S) if failing else usual_s):\n",
            "        while not ended.wait(1e9):\n",
            ("collect/kubernetes/test_lease.py::test_a_lost_lease_is_noticed_while_renewing",),
        ),
        Mutant(
            "a Lease is taken over only after its holder's duration",
            "        return time.monotonic() - self._since > duration_s\n",
            "        return True\n",
            ("collect/kubernetes/test_lease.py::test_nobody_s_clock_is_trusted",),
        ),
        Mutant(
            "a Lease that another took is lost",
            'return found is None or found.get("spec", {}).get("holderIdentity") == self._identity',
            "return True",
            ("collect/kubernetes/test_lease.py::test_a_lost_lease_is_noticed_while_renewing",),
        ),
    ),
    "Numbers are right": (
        Mutant(
            "a request that timed out took at least the time limit, wherever a figure is shown",
            "            greatest(requests.latency_ns, coalesce(round(selected_runs.timeout_s * 1e9)::BIGINT, 0)),\n",
            "            requests.latency_ns,\n",
            ("report/test_agreement.py::test_figures_of_cells_in_tables",),
        ),
        Mutant(
            "warm-ups are in no figure",
            "WHERE (measured OR every_phase) AND ",
            "WHERE ",
            ("report/test_agreement.py::test_figures_of_cells_in_tables",),
            where="scripts/loadstone/sql/measured_requests.sql",
        ),
        Mutant(
            "excluded runs are in no figure of latency over time",
            '        if not row["excluded"] and (found',
            "        if (found",
            ("report/test_agreement.py::test_latency_over_time_on_the_page",),
            where="scripts/loadstone/report/rate_data.py",
        ),
        Mutant(
            "the requests of an excluded run are only read if asked for",
            " AND (NOT selected_runs.excluded OR with_excluded);\n",
            ";\n",
            ("analysis/test_batches.py::test_an_excluded_run_is_read_only_if_asked_for",),
            where="scripts/loadstone/sql/measured_requests.sql",
        ),
        Mutant(
            "lines are fitted to figures of requests where there are any",
            "    ANTI JOIN run_figures USING (app, host, timestamp, variant_dir, rate, run)\n",
            "",
            ("report/test_agreement.py::test_lines_are_fitted_to_figures_of_requests_where_there_are_any",),
            where="scripts/loadstone/sql/comparison_points.sql",
        ),
        Mutant(
            "latency over time says which values are lower bounds",
            '"at_least": {name: row["at_least"][name] for name in OVER_TIME},\n',
            '"at_least": dict.fromkeys(OVER_TIME, False),\n',
            ("report/test_agreement.py::test_latency_over_time_on_the_page",),
        ),
        Mutant(
            "percentiles of a cell are those of its pooled requests",
            "return (low * first * of_second + second * of_first) / (of_first * of_second)\n",
            "return float(low)\n",
            ("analysis/test_campaign.py::test_every_figure_equals_numpy",),
        ),
        Mutant(
            "the deviation of runs has ddof 0",
            "        stddev_pop(mean_ns ORDER BY series) AS run_std_ns,\n",
            "        stddev_samp(mean_ns ORDER BY series) AS run_std_ns,\n",
            ("analysis/test_campaign.py::test_every_figure_equals_numpy",),
        ),
        Mutant(
            "failures are a share of the requests whose outcome is known, per run",
            "n_failed / nullif(n_told, 0) AS error_fraction\n",
            "n_failed / n / 2 AS error_fraction\n",
            ("analysis/test_campaign.py::test_every_figure_equals_numpy",),
        ),
        Mutant(
            "send lag counts from when a request was due",
            "math.floor(1e9 / run[",
            "math.floor(2e9 / run[",
            ("analysis/test_campaign.py::test_send_lag",),
            where="scripts/loadstone/analysis/run_behaviour.py",
        ),
        Mutant(
            "a gRPC status other than OK is a failure",
            '        return "timeout" if code == _DEADLINE_EXCEEDED else "grpc"\n',
            "        return None\n",
            ("tables/test_error_class.py::test_the_class_of_a_response",),
        ),
        Mutant(
            "percentiles are never averaged over runs",
            "pooled.quantiles([*PERCENTILES.values()])",
            "np.mean([Latencies.pooled([(sample.latencies_ns, sample.censored)]).quantiles([*PERCENTILES.values()])"
            " for sample in sampled], axis=0).tolist()",
            ("report/test_followed.py::test_fifty_figures_picked_at_random_are_those_of_the_raw_files",),
        ),
    ),
    "Missing or truncated tables are rebuilt": (
        Mutant(
            "the sizes of its files are part of the fingerprint of a campaign's tables",
            ' {layout.converted_digest(tables, listing.campaign)}"',
            '"',
            ("workflow/test_archive_safety.py::test_whatever_is_deleted_of_tables_and_pages_is_made_again",),
        ),
    ),
    "A site with missing files is not published": (
        Mutant(
            "a site that has lost files is not published",
            "    files.check_complete(site)\n    try:\n",
            "    try:\n",
            ("publish/site/test_publish.py::test_a_site_that_has_lost_a_file_is_not_published",),
        ),
    ),
    "The gate does not pass unmeasured variants": (
        Mutant(
            "a variant that is no longer measured is inconclusive",
            "    findings += _no_longer_measured(places, judged, options)\n",
            "",
            ("analysis/test_gate.py::test_a_variant_that_is_no_longer_measured_is_not_silent",),
        ),
    ),
    "Links that lead out of the archive are not followed": (
        Mutant(
            "where a link leads is what counts, not its name",
            "    place = Path(os.path.realpath(path))\n",
            "    place = Path(os.path.abspath(path))\n",
            ("archive/test_links.py::test_a_link_that_leads_out_is_named_and_not_followed",),
        ),
    ),
    "Plain readers of Parquet get right keys": (
        Mutant(
            "folders of tables name no column, since DuckDB would guess its type",
            'named = {"app_dir": of.app, "host_dir": of.host, "timestamp_dir": of.timestamp}',
            'named = {"app": of.app, "host": of.host, "timestamp": of.timestamp}',
            ("tables/test_database.py::test_plain_readers_get_the_key_as_text",),
        ),
    ),
    "Tagged runs are excluded, and pages say so": (
        Mutant(
            "tagged runs are excluded",
            'for tag in matching if tag["tag"] in excluding\n',
            'for tag in matching if tag["tag"] not in excluding\n',
            ("analysis/test_campaign.py::test_tags_exclude_when_asked_to_and_come_back_without_reading_a_raw_file",),
        ),
        Mutant(
            "a tag's rate is a number",
            "float(str(declared)) in (number, ",
            "str(declared) in (str(number), ",
            ("tables/test_exclusion.py::test_numbers_of_tags_are_numbers_or_patterns",),
        ),
        Mutant(
            "a page shows the figures with and without excluded runs",
            "{% if with_excluded %}\n{{ parts.choices(",
            "{% if false %}\n{{ parts.choices(",
            ("workflow/test_catalogue.py::test_the_pages_say_so_and_offer_the_result_with_it_put_back",),
            where="scripts/loadstone/report/templates/campaign.html",
        ),
    ),
}
