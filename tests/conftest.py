"""What all tests share."""

import compileall
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# One thread for linear algebra, as jobs have (`deterministic`): several wait for each other, busily, where cores
# are shared. What tests start does not inherit it.
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("OPENBLAS_NUM_THREADS", "1")
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401 - has an OpenBLAS of its own

# Workers don't wait for each other's attacks: what tests assert of latencies is true on a busy machine too.
LOCKS = Path(tempfile.gettempdir(), f"loadstone-locks-{os.getpid()}")
LOCKS.mkdir(exist_ok=True)
LOCKS.chmod(0o1777)  # for tests of other users
os.environ["LOADSTONE_LOCKS"] = str(LOCKS)

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "tests"))

from loadstone.report import charts, query_page  # noqa: E402
from loadstone.report.output import compile_templates, shared_assets  # noqa: E402
from support import site  # noqa: E402
from support.checkout import copy_project  # noqa: E402
from support.workers import made_once  # noqa: E402

_SPECIFICATIONS = "scripts/loadstone/report/charts/__pycache__/specifications.json"
_TEMPLATES = "scripts/loadstone/report/__pycache__/templates"

pytest_plugins = ["cluster.fixtures", "support.storage"]

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared machines are slow at times; a test never fails for that.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


# Longest first, so that no worker has to wait for the other's last file.
LONGEST = (
    "soak",
    "fuzz",
    "workflow/test_reproducible",
    "scheduler/test_slurm",
    "workflow/test_cluster_safety",
    "workflow/test_cluster_told",
    "workflow/test_cluster_sweep",
    "report/test_browser",
    "workflow",
    "reproduction",
    "stats",
    "faults",
    "report",
)
# Mostly they wait for the end of attacks: spread among files that compute.
ATTACKING = ("workflow", "collect", "faults", "scheduler", "docs/test_own_sweep")
# Loops of minutes, sweeps that fail, are forced, extended or published in many ways, faults of disks and clocks, other
# load generators, simulations of many pages, archives that are analysed twice or as a whole, real schedulers,
# installations, and all that needs a cluster: `make test-long`, not `make test`.
LONG = (
    "soak",
    "scheduler",
    "reproduction",
    "faults",
    "workflow/test_archive_safety",
    "workflow/test_broken_archive",
    "workflow/test_catalogue",
    "workflow/test_comparisons",
    "workflow/test_extend",
    "workflow/test_failing",
    "workflow/test_faults",
    "workflow/test_gate",
    "workflow/test_generators",
    "collect/test_equivalent_generators",
    "workflow/test_kill",
    "workflow/test_module",
    "workflow/test_deployed",
    "workflow/test_reproducible",
    "workflow/test_external_killed",
    "workflow/test_collecting_examples",
    "workflow/test_prometheus",
    "workflow/test_publish",
    "workflow/test_storing",
    "workflow/test_traces",
    "publish/site/test_killed",
    "publish/bucket/test_killed",
    "tables/test_memory",
    "readers/test_large_files",
    "toolchain/test_release",
    "toolchain/test_setup",
    "stats",
)
# Of them .ci/run runs these, and a fourteenth of the others that depends on the number of commits. LOADSTONE_SHARE=N
# repeats what ran at N commits.
ALWAYS = ("soak", "reproduction/test_groups", "reproduction/test_earlier_edition")
SHARE = int(os.environ.get("LOADSTONE_SHARE") or 0) % 14
_CLUSTERS = {"_plane", "networked_plane"}  # fixtures that start a control plane


def pytest_unconfigure() -> None:
    shutil.rmtree(LOCKS, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def name(item: pytest.Item) -> str:
        return item.path.relative_to(PROJECT / "tests").as_posix()

    def place(path: str) -> int:
        return next((number for number, prefix in enumerate(LONGEST) if path.startswith(prefix)), len(LONGEST))

    files = sorted(dict.fromkeys(map(name, items)), key=place)
    order: dict[str, float] = {}
    for attacking in (False, True):
        own = [path for path in files if path.startswith(ATTACKING) == attacking]
        order |= {path: (number + attacking / 2) / len(own) for number, path in enumerate(own)}
    items.sort(key=lambda item: order[name(item)])
    for item in items:
        if name(item).startswith(LONG) or _CLUSTERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("long")
        if name(item).startswith("fuzz"):
            item.add_marker("fuzz")
        share = zlib.crc32(f"{name(item)}::{item.name}".encode()) % 14
        if item.get_closest_marker("long") and (name(item).startswith(ALWAYS) or share == SHARE):
            item.add_marker("share")


@pytest.fixture
def bystander() -> Iterator[None]:
    """A process of nobody's run in a session of its own, which must be running at the end of the test."""
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield
    running = process.poll() is None
    process.kill()
    process.wait()
    assert running


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real material beside the checkout; tests that need it are skipped where it is absent."""
    folder = PROJECT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with real material is not there")
    return folder


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout's files (no results), to be copied again for each test.

    What takes seconds to make and is the same of every site lies there: the library that draws, DuckDB for browsers. So
    does the library's bytecode: each job is a Python of its own.
    """
    return made_once(tmp_path_factory, "pristine", _make_pristine)


def _make_pristine(folder: Path) -> Path:
    copy_project(folder)
    compileall.compile_dir(folder / "scripts", quiet=1)
    charts.trace_specifications()  # which are kept with compiled modules
    shutil.copy(PROJECT / _SPECIFICATIONS, folder / _SPECIFICATIONS)
    compile_templates()
    # Another worker may be writing one.
    shutil.copytree(PROJECT / _TEMPLATES, folder / _TEMPLATES, ignore=shutil.ignore_patterns("*.tmp"))
    site.write_assets(folder / "reports")
    for name in shared_assets():
        (folder / "reports/assets" / name).unlink()
    if (packages := folder / ".tools/duckdb-wasm").is_dir():
        query_page.write_engine(packages.resolve(), folder / "reports")
    return folder
