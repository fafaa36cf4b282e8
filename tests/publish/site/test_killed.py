"""Publishing killed at many moments: a reader finds the old site or the new one, whole, and the next call goes on."""

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from conftest import PROJECT
from loadstone.publish.site.publish import publish
from support.sites import BranchReader, destination, files_of, read_as_reader, write_site

# Says when it begins, so that a test's moments lie in what it does and not in how it starts.
PUBLISHER = """
import json, sys
from pathlib import Path
from loadstone.publish.site.publish import configured_destination, publish
given = json.loads(sys.argv[1])
if "repository" in given:
    given["repository"] = Path(given["repository"])
if given["to"] == "s3":
    import pyarrow.fs
print("begins", flush=True)
publish(Path(sys.argv[2]), configured_destination(given), keep=2, log=lambda text: None)
"""
MOMENTS = {"folder": 20, "branch": 8, "bucket": 12}


def begin(reader, reports: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PUBLISHER, json.dumps(reader.declared, default=str), str(reports)]
    environment = {"PYTHONPATH": str(PROJECT / "scripts")}
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    """As a power loss of this machine would: with the programs it has started, but not those of the remote's side."""
    main = psutil.Process(process.pid)
    found = {main}
    with suppress(psutil.Error):
        main.suspend()  # what it has started may start more until it stands still, too
        while started := set(main.children(recursive=True)) - found:
            found |= started
            for each in started:
                with suppress(psutil.NoSuchProcess):
                    if not _is_remote(each):
                        each.suspend()
    remote = [each for each in found if _is_remote(each)]
    for each in found:
        with suppress(psutil.Error):
            if each not in remote:
                each.kill()
    process.wait()
    psutil.wait_procs(remote, timeout=60)


def _is_remote(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any("receive-pack" in part or "upload-pack" in part for part in process.cmdline())
    return False


@pytest.mark.slow
def test_killed_at_any_moment(request, reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first", campaigns=8)
    process = begin(reader, reports)
    began = time.monotonic()
    assert process.wait() == 0
    whole_s = time.monotonic() - began
    moments = MOMENTS[request.node.callspec.params["reader"]]
    old, survived = files_of(reports), set()
    for moment in range(4 * moments):  # a busy machine may be slower than it was at first
        if moment >= moments and survived == {"old", "new"}:
            break
        write_site(reports, says=f"number {moment}", campaigns=8)
        new = files_of(reports)
        process = begin(reader, reports)
        time.sleep(1.2 * whole_s * moment / moments)
        kill(process)
        found = read_as_reader(reader.files())
        assert found in (old, new), moment
        survived.add("old" if found == old else "new")
        if moment % 3 == 2:  # else the next publication meets what two killed ones left
            publish(reports, destination(reader), keep=2, log=lambda _: None)
            assert read_as_reader(reader.files()) == new
            found = new
        old = found
    assert survived == {"old", "new"}
    publish(reports, destination(reader), keep=2, log=lambda _: None)
    files = reader.files()
    assert read_as_reader(files) == files_of(reports)
    assert len({name.split("/")[1] for name in files if name.startswith("releases/2")}) == 2
    if isinstance(reader, BranchReader):
        return
    listed = [name for name in files if not name.startswith("releases/2")]
    assert sorted(listed) == sorted(
        ["loadstone-publication.json", "releases/index.html", *(page for page in new if page.endswith(".html"))]
    )


def test_what_a_killed_one_has_transferred_is_not_transferred_again(tmp_path, reader) -> None:
    if isinstance(reader, BranchReader):
        pytest.skip("a push is all or nothing")
    reports = tmp_path / "reports"
    write_site(reports, says="first", campaigns=1)
    whole = destination(reader)

    class DiesError(Exception):
        pass

    def half(write, files) -> None:
        write(files[: len(files) // 2] if len(files) > 1 else files)
        if len(files) > 1:
            raise DiesError

    with whole.opened(dry_run=False), pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "write", partial(half, whole.write))
        patch.setattr(type(whole), "opened", lambda *_, **__: nullcontext())
        with pytest.raises(DiesError):
            publish(reports, whole, log=lambda _: None)
    said: list[str] = []
    publish(reports, whole, log=said.append)
    assert "5 files to transfer" in said[1]
    assert read_as_reader(reader.files()) == files_of(reports)
