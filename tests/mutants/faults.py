"""Faults that break what tests/README.md promises where processes, machines and storage fail."""

from mutants.mutant import Mutant

MUTANTS = {
    "Processes killed at each stage": (
        Mutant(
            "temporary files of killed processes are removed",
            "                if time.time() - path.lstat().st_mtime > _DAY_S:\n",
            "                if time.time() - path.lstat().st_mtime < _DAY_S:\n",
            ("archive/test_durable.py::test_what_a_killed_process_left_is_removed_after_a_day",),
        ),
        Mutant(
            "a manifest that was cut short is none",
            "    except (OSError, ValueError, KeyError, TypeError):\n        return {}\n\n\ndef save_records",
            "    except OSError:\n        return {}\n\n\ndef save_records",
            ("tables/test_upgrades.py::test_an_upgrade_that_was_killed_goes_on_where_it_was",),
        ),
        Mutant(
            "load generators are registered with what ends them",
            "            supervisor.register_self(supervises=self._supervised)\n",
            "            os.setsid()\n",
            ("collect/test_several_generators.py::test_a_collecting_process_that_is_killed_leaves_no_generator",),
        ),
    ),
    "The clock jumps by an hour, both ways": (
        Mutant(
            "files of the future, from before the clock was set back, become files of now",
            "            if Path(file).stat().st_mtime > now:\n",
            "            if False:\n",
            ("workflow/test_faults.py::test_the_clock_is_set_back_after_a_sweep",),
        ),
    ),
    "The disk is full": (
        Mutant(
            "a file that a full disk cut short does not replace the former one",
            "        temporary.write_bytes(content)\n        temporary.replace(path)\n",
            "        path.write_bytes(content)\n",
            ("archive/test_durable.py::test_a_failed_write_leaves_the_former_file_and_no_rest",),
        ),
        Mutant(
            "a bundle that could not be written leaves no rest",
            "        finally:\n            temporary.unlink(missing_ok=True)\n        sync(path.parent)\n",
            "        finally:\n            pass\n        sync(path.parent)\n",
            ("publish/bundle/test_bundle.py::test_a_full_disk_leaves_the_former_bundle",),
        ),
    ),
    "Read-only file system": (
        Mutant(
            "an error of the storage is named",
            '                    raise LoadstoneError(f"run {run} of {cell}: {error}") from None\n',
            '                    raise LoadstoneError(f"run {run} of {cell} could not be collected") from None\n',
            ("faults/test_storage.py::test_read_only_storage",),
        ),
    ),
    "Storage without hard links": (
        Mutant(
            "storage without hard links takes results too",
            "        if error.errno not in _NO_LINKS:\n            raise\n",
            "        raise\n",
            ("faults/test_storage.py::test_without_hard_links",),
        ),
    ),
    "Permissions are missing": (
        Mutant(
            "rights in a cluster are checked before the first change",
            "            rights.check(self.cluster, self.declared)\n",
            "            pass\n",
            ("workflow/test_cluster_safety.py::test_each_missing_right_is_named_and_nothing_was_changed",),
        ),
    ),
    "Two users on one machine": (
        Mutant(
            "the lock of the machine is for all its users",
            "            os.fchmod(descriptor, 0o666)\n",
            "",
            ("workflow/test_faults.py::test_two_users_of_one_machine",),
        ),
    ),
    "DNS is gone": (
        Mutant(
            "a name that is not resolved is an error of the run, with the name in it",
            "NO_RESPONSE = (\n    OSError,\n    TypeError,\n    ValueError,\n    httpcore.NetworkError,\n",
            "NO_RESPONSE = (\n    TypeError,\n    ValueError,\n",
            ("workflow/test_faults.py::test_names_can_no_longer_be_resolved",),
        ),
    ),
    "The target restarts": (
        Mutant(
            "a refused connection is a failure of the server",
            'Cause("refused", SERVER, ',
            'Cause("refused", CLIENT, ',
            ("workflow/test_faults.py::test_the_target_restarts_during_the_attack",),
        ),
    ),
    "The target stops responding": (
        Mutant(
            "requests without a response are timeouts",
            '("timeout", ("deadline exceeded", "Client.Timeout", "timeout", "timed out"))',
            '("timeout", ("timed out",))',
            ("workflow/test_faults.py::test_the_target_answers_slowly_for_ever",),
        ),
    ),
    "The generator is out of file descriptors": (
        Mutant(
            "the load generator's own limit is told from a fault of the server",
            '"%too many open files%|%EMFILE%|%ENFILE%"',
            '"%EMFILE%|%ENFILE%"',
            ("workflow/test_faults.py::test_the_generator_is_out_of_file_descriptors",),
        ),
    ),
    "The checkout was moved": (
        Mutant(
            "fingerprints name files relative to the tables",
            'digest.update(b"%s %d\\n" % (os.fsencode(file)[prefix:], file.stat().st_size))',
            'digest.update(b"%s %d\\n" % (os.fsencode(file.resolve()), file.stat().st_size))',
            ("workflow/test_faults.py::test_a_checkout_that_was_moved_has_nothing_to_do",),
        ),
    ),
    "The archive is from a backup": (
        Mutant(
            "no file or folder of the archive is an input of a rule",
            "        collected_first,\n        before_update(collected_before),  # not an output of any job\n",
            "        collected_first,\n"
            "        before_update(collected_before),  # not an output of any job\n"
            "        lambda wildcards: str(SNAPSHOT.campaign(key_of(wildcards)).path),\n",
            ("workflow/test_faults.py::test_an_archive_from_a_backup",),
            where="rules/convert.smk",
        ),
    ),
    "The archive is from git": (
        Mutant(
            "cells are in the order of their names, not of their times",
            "    listing.cells.sort(key=lambda cell: (float(cell.cell.rate), cell.cell.variant_dir))\n",
            "    listing.cells.sort(key=lambda cell: cell.metadata[1] if cell.metadata else 0)\n",
            ("workflow/test_faults.py::test_an_archive_checked_out_by_git",),
        ),
    ),
    "Snakemake was another version": (
        Mutant(
            "what is up to date is seen from the files alone",
            "    return last if last and Path(last).read_text() == fingerprint else next_marker(folder)\n",
            "    return next_marker(folder)\n",
            ("workflow/test_faults.py::test_snakemake_was_another_version",),
        ),
    ),
    "The API server is unavailable": (
        Mutant(
            "a request without an answer is sent again",
            "            return _Answer(0, {}, reason)\n",
            '            raise ClusterError(f"{self.host}: {reason}") from None\n',
            ("collect/kubernetes/test_client.py::test_calls_outlast_a_restart_of_the_server",),
        ),
    ),
    "The storage is unavailable": (
        Mutant(
            "a large object gets its name by a copy, when all of its parts are there",
            "        if size < _ONE_REQUEST_BYTES:\n",
            "        if True:\n",
            ("publish/bucket/test_there_and_back.py::test_a_large_file_is_whole_or_not_there",),
        ),
    ),
    "Two machines push to one bucket": (
        Mutant(
            "who pushes says so before he looks for others",
            '            for other in sorted(name for name in listed if name.endswith(".json") and name != claim):\n',
            "            for other in ():\n",
            ("publish/bucket/test_refused.py::test_two_who_push_at_once",),
        ),
    ),
    "An object is damaged or different": (
        Mutant(
            "a run is compared with its checksums before its files get their names",
            "            self._check(unit, at)\n            self._give_names(missing, staging)\n",
            "            self._give_names(missing, staging)\n",
            ("publish/bucket/test_refused.py::test_a_damaged_run_is_not_taken",),
        ),
    ),
    "Damaged files": (
        Mutant(
            "a pipe in place of a file is not waited for",
            "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)\n    if not stat.S_ISREG(os.fstat(descriptor).st_mode):",
            "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)\n    if False:",
            (
                "readers/test_stream.py::test_what_can_not_be_opened_is_named_and_never_waited_for",
                "publish/bucket/test_refused.py::test_a_pipe_among_a_run_s_files_is_not_waited_for",
            ),
        ),
        Mutant(
            "a truncated file is noticed",
            '        problems.truncated = "the compressed data end early"\n',
            "        pass\n",
            ("readers/test_stream.py::test_truncated_at_every_byte_of_the_last_frame",),
        ),
        Mutant(
            "an empty file is noticed",
            '                problems.truncated = "it is empty"\n',
            "                pass\n",
            ("readers/test_stream.py::test_an_empty_file_is_truncated",),
            where="scripts/loadstone/readers/stream.py",
        ),
        Mutant(
            "what is no file of a run is named",
            "        cell.strays.append(entry.name)\n"
            '        listing.add_problem(entry.path, "is not a file of a run")\n',
            "        cell.strays.append(entry.name)\n",
            ("workflow/test_broken_archive.py::test_nothing_crashes_and_everything_is_named",),
        ),
    ),
}
