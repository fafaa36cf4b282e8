"""What an entry point shows of an error or an interruption, in its log and on the terminal."""

import copy
import importlib.util
import os
import pickle
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROJECT
from loadstone.workflow.job import Confidential, without_pandas
from loadstone.workflow.markers import Requested

PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from loadstone.workflow.job import job
from loadstone.errors import LoadstoneError
with job(sys.argv[2]) as log:
    try:
        log("ready")
        {body}
    finally:
        log("cleaned up")
"""


def start(tmp_path: Path, body: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM.format(body=body), str(PROJECT / "scripts"), str(tmp_path / "job.log")]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | variables)


def test_ctrl_c_shows_no_traceback_and_cleans_up(tmp_path: Path) -> None:
    process = start(tmp_path, "time.sleep(60)")
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    rest = process.communicate()[1]
    assert (process.returncode, rest) == (130, "cleaned up\ninterrupted\n")
    assert "Traceback" not in (tmp_path / "job.log").read_text()


def test_sigterm_cleans_up(tmp_path: Path) -> None:
    process = start(tmp_path, "time.sleep(60)")
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    rest = process.communicate()[1]
    assert (process.returncode, rest) == (143, "cleaned up\n")


@pytest.mark.parametrize("next_command", [None, "another"])
def test_on_another_machine_it_ends_with_its_command(tmp_path: Path, next_command: str | None) -> None:
    plan = tmp_path / "plan.json"
    Requested("this", {}, {}, "1").write(plan)
    process = start(tmp_path, "time.sleep(60)", LOADSTONE_COMMAND="this", LOADSTONE_REQUESTED=str(plan))
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    if next_command:
        Requested(next_command, {}, {}, "1").write(plan)
    else:
        plan.unlink()
    rest = process.communicate()[1]
    why = "another one has begun" if next_command else "its command has ended"
    assert process.returncode == 143 and why in rest and rest.endswith("\ncleaned up\n")


@pytest.mark.parametrize(
    ("body", "shown", "has_traceback"),
    [("raise LoadstoneError('no licence')", "error: no licence", False), ("1 / 0", "ZeroDivisionError", True)],
)
def test_only_what_nobody_foresaw_has_a_traceback(tmp_path: Path, body, shown, has_traceback) -> None:
    process = start(tmp_path, body)
    error = process.communicate()[1]
    assert process.returncode == 1 and shown in error
    assert ("Traceback" in error) is ("Traceback" in (tmp_path / "job.log").read_text()) is has_traceback


def test_a_confidential_parameter_is_pickled_without_its_content_and_leaves_the_environment() -> None:
    content = {"token": "open-sesame", "body": random.Random(1).randbytes(300_000).hex()}
    pickled = pickle.dumps(copy.deepcopy(Confidential("TEST", content)), protocol=4)
    assert b"sesame" not in pickled and len(pickled) < 200
    program = (
        "import os, pickle, sys; sys.path.insert(0, sys.argv[1])\n"
        "found = pickle.loads(bytes.fromhex(sys.argv[2]))\n"
        "left = [name for name in os.environ if 'LOADSTONE_TEST' in name]\n"
        "print(type(found).__name__, found['token'], len(found['body']), len(left))"
    )
    command = [sys.executable, "-c", program, str(PROJECT / "scripts"), pickled.hex()]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "dict open-sesame 600000 0\n"
    assert repr(Confidential("TEST", content)) == "Confidential(LOADSTONE_TEST)"
    assert pickle.loads(pickled) == content  # takes the variables out of this process's environment too
    assert not [name for name in os.environ if name.startswith("LOADSTONE_TEST")]


def test_a_command_starts_without_the_libraries_that_only_its_jobs_need() -> None:
    """With them, every command would take a tenth of a second longer."""
    code = (
        "import sys; from loadstone.workflow import command, declarations, summary; "
        "print(*{'duckdb', 'httpcore', 'numpy', 'pyarrow'} & sys.modules.keys())"
    )
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "scripts")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_snakemake_finds_pandas_hidden_as_before_once_it_was_hidden_from_pyarrow(monkeypatch):
    """After the table in the terminal, Snakemake looks for it again where ``--report-after-run`` is given."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with without_pandas(), pytest.raises(ModuleNotFoundError):
        importlib.util.find_spec("pandas")
    assert importlib.util.find_spec("pandas") is None
    assert sys.modules["pandas"] is None
