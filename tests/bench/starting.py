"""What a command and each of its jobs pay before their own work: Snakemake's start, and the imports of each script."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.archives import snakemake
from bench.measuring import Row, timed
from support.checkout import PROJECT, copy_project

_REPEATED = 5
_HEAVY = ("altair", "duckdb", "kubernetes", "numpy", "pandas", "pyarrow", "scipy")
# Snakemake's preamble of each script unpickles an object of this module.
_PREAMBLE = "import snakemake.script"


def imports(script: Path) -> str:
    """The import statements at the top of a script, as code."""
    found = (node for node in ast.parse(script.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom))
    return "\n".join(map(ast.unparse, found))


def cpu_s(run: Callable[[], object]) -> float:
    """Processor time of the programs that `run` starts; the least of several."""
    found = []
    for _ in range(_REPEATED):
        with timed() as took:
            run()
        found.append(took.cpu_s)
    return min(found)


def python(code: str) -> str:
    """Run code in a Python of its own, as a job does; returns what it prints."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "scripts")}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def starting(folder: Path) -> Iterator[Row]:
    """CPU before each job's own work; the peer is a Python that does nothing."""
    checkout = copy_project(folder / "checkout")
    for name in ("archive", "tables", "reports"):
        (folder / name).mkdir()
    peer = cpu_s(lambda: python("pass"))
    yield Row("python -c pass", f"{peer:.2f} s of CPU")
    found = cpu_s(lambda: snakemake(checkout, folder, "--version"))
    yield Row("snakemake --version", f"{found:.2f} s of CPU")
    found = cpu_s(lambda: snakemake(checkout, folder, "-n", "report"))
    yield Row("snakemake -n report over an empty archive", f"{found:.2f} s of CPU")
    for script in sorted((PROJECT / "scripts").glob("*.py")):
        code = f"{_PREAMBLE}\n{imports(script)}"
        loaded = python(f"{code}\nimport sys\nprint(*(name for name in {_HEAVY} if name in sys.modules))").split()
        found = cpu_s(lambda code=code: python(code))
        yield Row(
            f"job {script.stem}: {', '.join(loaded) or 'no large library'}",
            f"{found:.2f} s of CPU, {found / peer:.0f} x",
        )
