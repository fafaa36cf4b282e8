"""Faults that the tests must notice: each breaks the code at one place and names the tests that fail then.

`before` stands exactly once in the files below `where`; `after` takes its place.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault; `promise` is what it breaks, `tests` are test ids below ``tests/``."""

    promise: str
    before: str
    after: str
    tests: tuple[str, ...]
    where: str = "scripts/loadstone"


MUTANTS = (
    # --- Raw results are never changed or lost ------------------------------------------------------------------------
    Mutant(
        "an existing name wins",
        "        os.link(staged, path)\n",
        "        os.replace(staged, path)\n",
        ("archive/test_durable.py",),
    ),
    Mutant(
        "storage without hard links takes results too",
        "        if error.errno not in _NO_LINKS:\n            raise\n",
        "        raise\n",
        ("faults/test_storage.py::test_without_hard_links",),
    ),
    Mutant(
        "files of results that were removed are set aside, never mixed with new ones",
        "if final.exists() and not final.samefile(file):",
        "if final.exists() and final.samefile(file):",
        ("collect/test_collect_run.py::test_leftovers_of_removed_results_are_set_aside",),
    ),
    Mutant(
        "a collected run is never collected again",
        "        if self.run not in scan_cell(self.cell).collected():\n",
        "        if self.run in scan_cell(self.cell).collected():\n",
        ("collect/test_collect_run.py",),
    ),
    Mutant(
        "a file that a full disk cut short does not replace the former one",
        "        temporary.write_bytes(content)\n        temporary.replace(path)\n",
        "        path.write_bytes(content)\n",
        ("archive/test_durable.py::test_a_failed_write_leaves_the_former_file_and_no_rest",),
    ),
    Mutant(
        "what nobody else may read is never readable by them",
        "        temporary.chmod(mode)\n",
        "",
        ("archive/test_durable.py",),
    ),
    Mutant(
        "a pipe in place of a file is not waited for",
        "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)\n    if not stat.S_ISREG(os.fstat(descriptor).st_mode):",
        "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)\n    if False:",
        ("readers/test_stream.py", "publish/bucket/test_refused.py::test_a_pipe_among_a_run_s_files_is_not_waited_for"),
    ),
    # --- One attack at a time -----------------------------------------------------------------------------------------
    Mutant(
        "the lock of the machine is exclusive",
        "        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)\n",
        ("test_process.py",),
    ),
    Mutant(
        "a lock whose file was removed meanwhile is none",
        "        if not _same_file(descriptor, path):\n",
        "        if False:\n",
        ("test_process.py",),
    ),
    Mutant(
        "a lock is not opened through a link",
        "    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC\n",
        "    flags = os.O_RDWR | os.O_CLOEXEC\n",
        ("test_process.py",),
    ),
    Mutant(
        "nothing outlives a killed job",
        '        os.write(self._descriptor, b"%c%d\\n" % (b"*" if supervises else b"+", os.getpid()))\n',
        "        pass\n",
        ("test_process.py",),
    ),
    Mutant(
        "nor does a daemon of its target",
        "        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)\n",
        "        pass\n",
        ("test_process.py",),
    ),
    Mutant(
        "a job on another machine ends with its command",
        "    _end_with_command()\n",
        "",
        ("workflow/test_job.py",),
    ),
    # --- The cluster --------------------------------------------------------------------------------------------------
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
    # --- Numbers are right --------------------------------------------------------------------------------------------
    Mutant(
        "a run may differ by one per cent from its plan, not more",
        "abs(requests - expected) <= max(TOLERANCE * expected,",
        "abs(requests - expected) <= max(10 * TOLERANCE * expected,",
        ("analysis/test_campaign.py::test_a_run_may_differ_by_one_percent",),
    ),
    Mutant(
        "a run whose requests repeat is excluded",
        "    if repeated:\n        reasons.append(",
        "    if False:\n        reasons.append(",
        ("analysis/test_campaign.py::test_repeated_numbers_exclude",),
    ),
    Mutant(
        "tagged runs are excluded",
        '        if tag["tag"] in excluding\n',
        '        if tag["tag"] not in excluding\n',
        ("analysis/test_campaign.py::test_tags_exclude_when_asked_to_and_come_back_without_reading_a_raw_file",),
    ),
    Mutant(
        "open and closed load are never pooled",
        "    if len(loads) > 1:\n",
        "    if len(loads) > 9:\n",
        ("tables/test_foreign.py::test_two_folders_of_one_variant_measured_in_other_ways_are_not_pooled",),
    ),
    Mutant(
        "a request that timed out took at least the time limit, wherever a figure is shown",
        "            greatest(requests.latency_ns, coalesce(round(selected_runs.timeout_s * 1e9)::BIGINT, 0)),\n",
        "            requests.latency_ns,\n",
        ("report/test_agreement.py",),
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
        " AND (NOT selected_runs.excluded OR with_excluded);\n",
        ";\n",
        ("report/test_agreement.py::test_latency_over_time_on_the_page",),
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
        '"at_least": {name: is_lower_bound(row, share) for name, share in OVER_TIME.items()},\n',
        '"at_least": dict.fromkeys(OVER_TIME, False),\n',
        ("report/test_agreement.py::test_latency_over_time_on_the_page",),
    ),
    Mutant(
        "percentiles of a cell are those of its pooled requests",
        "        quantile_cont(latency_ns, $percentiles) AS percentiles_ns,\n",
        "        quantile_disc(latency_ns, $percentiles) AS percentiles_ns,\n",
        ("analysis/test_campaign.py::test_every_figure_equals_numpy",),
        where="scripts/loadstone/sql/cells.sql",
    ),
    Mutant(
        "the deviation of runs has ddof 0",
        "        stddev_pop(mean_ns ORDER BY host, timestamp, variant_dir, run) AS run_std_ns,\n",
        "        stddev_samp(mean_ns ORDER BY host, timestamp, variant_dir, run) AS run_std_ns,\n",
        ("analysis/test_campaign.py::test_every_figure_equals_numpy",),
    ),
    Mutant(
        "failures are a share of the requests whose outcome is known, per run",
        "        count(error_class) / nullif(count(code), 0) AS error_fraction\n",
        "        count(error_class) / count(*) / 2 AS error_fraction\n",
        ("analysis/test_campaign.py::test_every_figure_equals_numpy",),
    ),
    Mutant(
        "a percentile takes ten requests beyond it",
        "    return requests * min(probability, 1 - probability) >= _BEYOND - 1e-9\n",
        "    return True\n",
        ("analysis/test_effects.py::test_a_percentile_that_the_sample_cannot_support_says_what_it_takes",),
    ),
    Mutant(
        "send lag counts from when a request was due",
        "        seq::HUGEINT * floor(1e9 / rate)::HUGEINT AS due_ns\n",
        "        seq::HUGEINT * floor(2e9 / rate)::HUGEINT AS due_ns\n",
        ("analysis/test_campaign.py::test_send_lag",),
        where="scripts/loadstone/sql/sending.sql",
    ),
    # --- Statistics ---------------------------------------------------------------------------------------------------
    Mutant(
        "few runs: the standard error is widened by n / (n - 1)",
        "    between = (float(np.var(draws, ddof=1)) - noise) * n_runs / (n_runs - 1)\n",
        "    between = (float(np.var(draws, ddof=1)) - noise) / 4\n",
        ("stats/test_bootstrap.py::test_a_standard_error_is_that_of_the_runs_means",),
    ),
    Mutant(
        "intervals are Student's, not normal",
        "    factor = t_factor(confidence, found.n_runs - 1)\n",
        "    factor = t_factor(confidence, 1e6)\n",
        ("stats/test_bootstrap.py::test_intervals_cover_the_truth",),
    ),
    Mutant(
        "p values are adjusted for the number of tests",
        "np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))",
        "np.maximum.accumulate(p[order])",
        ("stats/test_contrasts.py::test_holm_is_that_of_statsmodels",),
    ),
    Mutant(
        "equivalence is two one-sided tests against the margin",
        "        return t_cdf(abs(self.effect) - float(np.log1p(margin)), self.error, self.scaled.freedom)\n",
        "        return 1 - self.p_different()\n",
        ("stats/test_contrasts.py::test_equivalence_is_two_one_sided_tests",),
    ),
    Mutant(
        "a two-sided test counts both sides",
        "        return 2 * t_cdf(-abs(self.effect), self.error, self.scaled.freedom)\n",
        "        return t_cdf(-abs(self.effect), self.error, self.scaled.freedom)\n",
        ("stats/test_contrasts.py::test_reported_means_of_runs_are_compared_by_welchs_t",),
    ),
    Mutant(
        "the clock's resolution widens an interval",
        "sum((step / value) ** 2 for value in values) / 12 if logs else 0.0",
        "0.0 if logs else 0.0",
        ("stats/test_contrasts.py::test_a_step_of_the_clock_is_never_resolved_however_many_runs_agree",),
    ),
    Mutant(
        "layers add up: the interaction is (top - left) - (right - bottom)",
        "_SIGNS = (1, -1, -1, 1)",
        "_SIGNS = (1, -1, 1, -1)",
        ("stats/test_interaction.py::test_means_of_runs_alone_tell_it_as_student_does",),
    ),
    Mutant(
        "a line has n - 2 degrees of freedom",
        "    factor = t_factor(confidence, n - 2)\n",
        "    factor = t_factor(confidence, n - 1)\n",
        ("stats/test_lines.py::test_the_line_is_numpy_s_and_its_interval_is_scipy_s",),
    ),
    Mutant(
        "groups that disagree are compared two by two, with Bonferroni's factor",
        "    return float(min(1.0, found.min() * found.size))\n",
        "    return float(min(1.0, found.min()))\n",
        ("stats/test_shares.py::test_several_groups_are_compared_two_by_two",),
    ),
    # --- Raw formats --------------------------------------------------------------------------------------------------
    Mutant(
        "a truncated file is noticed",
        '        problems.truncated = "the compressed data end early"\n',
        "        pass\n",
        ("readers/test_stream.py",),
    ),
    Mutant(
        "an empty file is noticed",
        '                problems.truncated = "it is empty"\n',
        "                pass\n",
        ("readers/test_stream.py::test_an_empty_file_is_truncated",),
        where="scripts/loadstone/readers/stream.py",
    ),
    # --- Hostile text, credentials ------------------------------------------------------------------------------------
    Mutant(
        "JSON in a page can end nothing",
        '.replace("<", "\\\\u003c")',
        "",
        ("report/test_site.py::test_json_in_a_page_can_end_nothing",),
    ),
    Mutant(
        "text on pages is escaped",
        "    autoescape=True,\n",
        "    autoescape=False,\n",
        ("report/test_progress.py::test_under_way",),
        where="scripts/loadstone/report/output.py",
    ),
    Mutant(
        "control characters are visible",
        'return _CONTROLS.sub(lambda found: f"\\\\u{ord(found[0]):04x}", value)',
        "return value",
        ("report/test_visible.py",),
    ),
    Mutant(
        "names of the archive are safe path parts",
        '    return re.sub(r"[^\\w:+\\-.~@ ]", lambda found:',
        '    return re.sub(r"[^\\w:+\\-.~@ {}]", lambda found:',
        ("archive/test_layout.py::test_any_folder_name_survives_encoding",),
    ),
    Mutant(
        "credentials stand nowhere",
        "    return bool(_SECRET.search(name)) or names().has_header(name)\n",
        "    return False\n",
        ("config/test_target.py", "collect/test_collect_run.py::test_a_credential_is_sent_and_stands_nowhere"),
    ),
    Mutant(
        "parameters of URLs are redacted",
        "        return self._parameter.sub(change, content)\n",
        "        return content\n",
        ("config/test_target.py", "tables/test_failures.py"),
    ),
    Mutant(
        "parameters with credentials are in nothing that Snakemake writes",
        "        return _inherited, (self._name, len(pieces))\n",
        "        return dict, (self.data,)\n",
        ("workflow/test_job.py",),
    ),
    Mutant(
        "equal credentials have equal marks, and marks tell nothing of them",
        "    digest = hashlib.pbkdf2_hmac(",
        "    return value\n    digest = hashlib.pbkdf2_hmac(",
        ("config/test_target.py",),
    ),
    # --- The gate -----------------------------------------------------------------------------------------------------
    Mutant(
        "the gate's test of failures is that of Farrington and Manning",
        "            max(1.0, pooled.factor, side.dispersion.factor) * share * (1 - share) / side.requests\n",
        "            share * (1 - share) / side.requests / 4\n",
        ("stats/test_shares.py::test_the_test_is_that_of_farrington_and_manning_times_the_dispersion",),
    ),
    Mutant(
        "variance between campaigns counts twice: both have it",
        "        parts.append((2 * between[0], between[1]))\n",
        "        pass\n",
        ("analysis/test_gate.py", "stats/test_history.py"),
    ),
    # --- The workflow -------------------------------------------------------------------------------------------------
    Mutant(
        "only `all` and `attacks` may attack",
        "def may_attack(",
        "def may_attack(*_: object) -> bool:\n    return True\n\n\ndef _may_attack(",
        (
            "workflow/test_archive_safety.py::test_the_report_of_an_unfinished_sweep_attacks_nothing_and_says_what_is_missing",
        ),
    ),
    Mutant(
        "SIGTERM ends a job with all clean-up done",
        "        raise SystemExit(128 + number)\n\n    signal.signal(signal.SIGTERM, leave)",
        "        os._exit(128 + number)\n\n    signal.signal(signal.SIGTERM, leave)",
        ("workflow/test_job.py",),
    ),
    Mutant(
        "who pushes says so before he looks for others",
        '            for other in sorted(name for name in listed if name.endswith(".json") and name != claim):\n',
        "            for other in ():\n",
        ("publish/bucket/test_refused.py::test_two_who_push_at_once",),
    ),
    Mutant(
        "a site that has lost files is not published",
        "    files.check_complete(site)\n    try:\n",
        "    try:\n",
        ("publish/site/test_publish.py::test_a_site_that_has_lost_a_file_is_not_published",),
    ),
    # --- Targets that already run, TLS and protocols ------------------------------------------------------------------
    Mutant(
        "only hosts that are listed are attacked",
        "        if not is_allowed(host, allowed):\n            yield (\n",
        "        if False:\n            yield (\n",
        ("workflow/test_external.py::test_only_listed_hosts_and_this_machine_are_attacked",),
    ),
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
    Mutant(
        "redirects of an external target lead to listed hosts",
        '        return declared if self.redirect_hosts is None else declared | {"hosts": list(self.redirect_hosts)}\n',
        "        return declared\n",
        ("collect/test_redirects.py::test_a_redirect_elsewhere_is_a_failed_request",),
    ),
    Mutant(
        "the headline is about a load below saturation",
        "key=lambda rate: (rate not in saturated, variants[rate], clear[rate], rate)",
        "key=lambda rate: (True, variants[rate], clear[rate], rate)",
        ("report/test_findings.py::test_headline_is_about_the_greatest_load_below_saturation",),
    ),
    Mutant(
        "the gate's test report fails where a figure is worse",
        "            fails = found.verdict == WORSE or outcome",
        "            fails = outcome",
        ("analysis/test_gate_reports.py::test_junit",),
    ),
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
        ("collect/test_connections.py",),
    ),
    Mutant(
        "variants of different protocols are not compared",
        "    return Reason(reasons.PROTOCOLS_DIFFER) if len(protocols(series)) > 1 else None\n",
        "    return None\n",
        ("analysis/test_protocols.py::test_variants_of_different_protocols_have_no_verdict_unless_it_is_allowed",),
    ),
    Mutant(
        "runs of different protocols are not pooled",
        "    if len(protocols) > 1:\n        ways = ",
        "    if False:\n        ways = ",
        ("analysis/test_protocols.py::test_runs_of_several_protocols_in_one_cell_are_excluded",),
    ),
    Mutant(
        "a campaign is not extended on another machine",
        '    if differences and config["sweep"].get("extend") != ANYWAY:\n',
        "    if False:\n",
        ("workflow/test_extend.py::test_what_differs_is_refused_unless_declared",),
    ),
    Mutant(
        "a gRPC status other than OK is a failure",
        '        return "timeout" if code == _DEADLINE_EXCEEDED else "grpc"\n',
        "        return None\n",
        ("tables/test_error_class.py",),
    ),
)
