"""Breaks the code on purpose, fault by fault, and shows that the tests notice: ``make mutate``.

For each fault of `mutations.MUTANTS` a copy of the project is broken and the tests that it names are run there. They
must fail. At the end all that failed are run without a fault, and must pass. Exit code 1 when a fault survives or can't
be judged.
``python tests/mutants/run.py WORDS...`` tries those whose promise or rule has one of the arguments in it.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.mutations import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
_CODE = (".py", ".sql")
_TESTS_FAILED = 1  # pytest's exit code; 2 and more: it could not run them


def place_of(mutant: Mutant, root: Path = ROOT) -> Path:
    """The file that a fault is put into. ValueError unless `before` stands there exactly once."""
    where = root / mutant.where
    files = [where] if where.is_file() else [path for path in sorted(where.rglob("*")) if path.suffix in _CODE]
    texts = {path: path.read_text() for path in files}
    found = [path for path, text in texts.items() for _ in range(text.count(mutant.before))]
    if len(found) != 1:
        raise ValueError(f"{mutant.rule}: the code to break stands {len(found)} times below {mutant.where}")
    return found[0]


@contextmanager
def copy_of_the_project(folder: Path) -> Iterator[Path]:
    """The tracked files as they are now, in a repository of their own, with what is installed."""
    copy = folder / "main"
    copy.mkdir()
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    listed = b"\0".join(name for name in names if name and (ROOT / os.fsdecode(name)).is_file())
    packed = subprocess.run(["tar", "-c", "--null", "-T", "-"], cwd=ROOT, input=listed, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=copy, input=packed.stdout, check=True)
    for name in (".venv", ".tools"):
        (copy / name).symlink_to(ROOT / name)
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    subprocess.run(["git", "add", "-A"], cwd=copy, check=True)
    yield copy


def judge(mutant: Mutant, copy: Path) -> tuple[str | None, str]:
    """The test that notices the fault, if one does, and what pytest said."""
    path = place_of(mutant, copy)
    text = path.read_text()
    path.write_text(text.replace(mutant.before, mutant.after))
    try:
        done = _pytest(copy, "-x", *(f"tests/{test}" for test in mutant.tests))
    finally:
        path.write_text(text)
    failed = _failed(done)
    if done.returncode != _TESTS_FAILED or not failed:
        return None, (done.stdout.splitlines() or ["nothing was printed"])[-1]
    return next(iter(failed.items()))


def fail_without_a_fault(tests: list[str], copy: Path, workers: int) -> dict[str, str]:
    """The tests that fail in a copy of the project as it is, each with what pytest said."""
    if not tests:  # without a name pytest would run them all
        return {}
    done = _pytest(copy, f"--numprocesses={workers}", "--dist=loadfile", *tests, timeout_s=3 * 3600)
    last = (done.stdout.splitlines() or ["nothing was printed"])[-1]
    print(f"\nThe tests that noticed them, without a fault: {last}")
    return _failed(done) or (dict.fromkeys(tests, last) if done.returncode else {})


def _pytest(copy: Path, *arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
    """The copy's library comes before the one that is installed from the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "scripts")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules without the fault are compiled once
    return subprocess.run(
        [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def _failed(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The tests that failed, with pytest's line of each."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return {line.removeprefix("FAILED ").partition(" - ")[0]: line for line in lines}


def main(words: list[str]) -> int:
    faults = [(promise, each) for promise, found in MUTANTS.items() for each in found]
    chosen = [
        mutant
        for promise, mutant in faults
        if not words or any(word in text for word in words for text in (promise, mutant.rule))
    ]
    copies: SimpleQueue[Path] = SimpleQueue()
    noticed: dict[str, str] = {}  # rule -> the test
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a test runs as another user
        workers = max(1, min(len(chosen), os.cpu_count() or 1))

        def attempt(mutant: Mutant) -> tuple[Mutant, str | None, str, float]:
            copy, begun = copies.get(), time.monotonic()
            try:
                return mutant, *judge(mutant, copy), time.monotonic() - begun
            except (ValueError, subprocess.TimeoutExpired) as error:
                return mutant, None, str(error), time.monotonic() - begun
            finally:
                copies.put(copy)

        for number in range(workers):
            (Path(folder) / str(number)).mkdir()
            with copy_of_the_project(Path(folder) / str(number)) as copy:
                copies.put(copy)
        with ThreadPoolExecutor(workers) as pool:
            for mutant, test, said, took_s in pool.map(attempt, chosen):
                if test:
                    noticed[mutant.rule] = test
                word = "noticed " if test else "SURVIVED"
                print(f"{word} {took_s:5.0f} s  {mutant.rule}\n{'':17}{said[:160]}", flush=True)
        failed = fail_without_a_fault(sorted({*noticed.values()}), copies.get(), workers)
    for rule in [rule for rule, test in noticed.items() if test in failed]:
        print(f"UNKNOWN  {rule}\n{'':17}{failed[noticed.pop(rule)][:160]}")
    print(f"\n{len(noticed)} of {len(chosen)} faults noticed")
    return int(len(noticed) < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
