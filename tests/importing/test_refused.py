"""What an import refuses, each with the file, the entry and what to do; before anything is copied."""

import os
import shlex
import shutil
from pathlib import Path

import pytest
from loadstone.archive import LINKS, allow_links
from loadstone.errors import LoadstoneError
from support import foreign, rawfiles

CELL = "shop/lab/2020-08-24T15:46:00+01:00/100/plain"


@pytest.fixture
def one(imports, entry):
    """An import of one file whose entry is changed; its refusals."""

    def refused(content: str | bytes = foreign.VEGETA, **changes: object) -> list[str]:
        imports.write("old/a.txt", content)
        imports.declare(entry(**changes))
        return imports.refused()

    return refused


@pytest.mark.parametrize("key", ["app", "host", "variant"])
@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "/etc", "../../x", ".hidden", "_dumps", " x", "a\nb", "a\x1b[2J", "x" * 300]
)
def test_names_that_lead_elsewhere_or_nobody_could_read(one, key, name):
    (line,) = one(**{key: name})
    assert line.startswith(f"config/imports.yaml, entry 1: old/a.txt: {key}: the name {name!r} ")


@pytest.mark.parametrize("name", ["..", "a/../../b", "_x"])
def test_groups_lead_nowhere_either(imports, entry, name):
    imports.write("old/a.txt", f"# {name} rps\n\n```\n{foreign.VEGETA}```\n")
    imports.declare(entry(match=r"(?P<name>\S+) rps", variant="{name}"))
    assert "variant: the name" in imports.refused()[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"timestamp": "2020-08-24T15:46:00"},
            "timestamp '2020-08-24T15:46:00' is not a time with an offset; write it like",
        ),
        ({"timestamp": "yesterday"}, "not a time with an offset"),
        ({"timestamp": "2020-08-24"}, "not a time with an offset"),
        ({"rate": "fast"}, "the rate 'fast' is not a positive number"),
        ({"rate": 0}, "the rate '0' is not a positive number"),
        ({"rate": -5}, "not a positive number"),
        ({"rate": "1e400"}, "not a positive number"),
        ({"rate": "1,5"}, "not a positive number"),
        ({"run": 0}, "the run '0' is not a whole number of at least 1"),
        ({"run": -1}, "not a whole number of at least 1"),
        ({"run": "two"}, "not a whole number of at least 1"),
        ({"run": 1.5}, "not a whole number of at least 1"),
        ({"run": 10**12}, "not a whole number of at least 1"),
        ({"duration": "five minutes"}, "the duration 'five minutes' is not valid; write it like 60s"),
        ({"started": "15:46"}, "started: '15:46' is not a time with an offset"),
        ({"zone": "CET"}, "the zone 'CET' is not valid; write the offset"),
        ({"generator": "k6"}, "the generator is 'k6', but the file was written by vegeta"),
        ({"variant": "{who}"}, "variant names {who}, which is not a group of match; its groups: none"),
        (
            {"match": "(?P<a>a)(?P<b>z)?", "variant": "{b}"},
            "variant names {b}, and that group of match matched nothing here",
        ),
        ({"match": "(?P<a>a)", "labels": {"pods": "{pods}"}}, "labels.pods names {pods}, which is not a group of"),
        ({"load_model": "closed"}, "vegeta sends open load, but load_model is closed"),
        (
            {"measured_phase": "steady"},
            "measured_phase is 'steady', but files of this format (vegeta.txt) have no phases",
        ),
    ],
)
def test_what_is_declared_must_mean_something(one, changes, said):
    (line,) = one(**changes)
    assert line.startswith("config/imports.yaml, entry 1: old/a.txt: ") and said in line


def test_a_number_of_users_is_whole(imports, entry):
    imports.write("old/a.k6.csv", "metric_name,timestamp,\n")
    imports.declare(entry(files="old/a.k6.csv", load_model="closed", rate=0.5))
    assert "under closed load the rate is the number of users, which 0.5 can't be" in imports.refused()[0]


def test_a_phase_that_the_file_has_not(imports, entry):
    imports.write("old/a.json", foreign.artillery([[9.0] * 10, [2.0] * 10]))
    imports.declare(entry(files="old/a.json", measured_phase="Sustained load"))
    (line,) = imports.refused()
    assert line.startswith("config/imports.yaml, entry 1: old/a.json: measured_phase is 'Sustained load', but its ")
    assert line.endswith("but its phases are 'Warm up', 'Sustained'")


def test_phases_of_which_nobody_says_which_counts_are_told_before_anything_is_copied(imports, entry):
    imports.write("old/a.json", foreign.artillery([[9.0] * 10, [2.0] * 10]))
    imports.declare(entry(files="old/a.json"))
    (told,) = [line for line in imports.plan().lines() if "phases" in line]
    assert told == (
        "old/a.json: of its phases 'Warm up', 'Sustained' the last one is used; declare measured_phase to use another"
    )
    imports.declare(entry(files="old/a.json", measured_phase="Sustained"))
    assert not [line for line in imports.plan().lines() if "phases" in line]


def test_files_that_can_not_be_read(imports, entry):
    imports.write("old/a.txt")
    os.mkfifo("old/pipe.txt")
    Path("old/link.txt").symlink_to("nowhere")
    imports.declare(
        entry(files="old/pipe.txt"),
        entry(files="old/link.txt"),
        entry(files="old/gone.txt"),
        entry(files="old"),
        entry(files="older/*.txt"),
        entry(files="old/a.txt", match="(?P<n>b+)"),
    )
    lines = imports.refused()
    assert [line.removeprefix("config/imports.yaml, ") for line in lines] == [
        "entry 1: old/pipe.txt: it cannot be read: it is not a regular file",
        "entry 2: old/link.txt: it cannot be read: No such file or directory",
        "entry 3: old/gone.txt: it cannot be read: No such file or directory",
        "entry 4: old: it cannot be read: it is not a regular file",
        "entry 5: older/*.txt: no file matches this pattern",
        "entry 6: old/a.txt: match matches none of 1 (it is applied to 'old/a.txt'); nothing would be imported",
    ]


@pytest.mark.parametrize("content", ["", "hello", "\0" * 100, '{"a": 1}', "a,b\n1,2\n", b"\xff\xfe\x00"])
def test_a_format_that_is_not_known(one, content):
    (line,) = one(content)
    assert "old/a.txt: its format is not known; declare it: format: vegeta.txt" in line


def test_a_document_without_results(imports, entry):
    imports.write("old/a.md", "# nothing here\n\n```\nls\n```\n")
    imports.declare(entry(files="old/a.md"))
    assert "none of them holds a result of that format; nothing would be imported" in imports.refused()[0]


def test_two_files_for_one_name(imports, entry):
    imports.write("old/a.txt")
    imports.write("old/b.txt", foreign.VEGETA.replace("79.87ms", "80ms"))
    imports.write("old/c.vegeta.txt.zst", rawfiles.compress(foreign.VEGETA.encode()))
    imports.declare(entry(), entry(files="old/c*"))
    lines = imports.refused()
    assert len(lines) == 2
    assert f"entry 1: old/b.txt: {CELL}/1.vegeta.txt is old/a.txt too (entry 1); give each" in lines[0]
    assert f"entry 2: old/c.vegeta.txt.zst: {CELL}/1.vegeta.txt.zst is old/a.txt too (entry 1)" in lines[1]


def test_another_content_never_replaces_what_is_there(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry())
    imports.run()
    imports.write("old/a.txt", foreign.VEGETA.replace("79.87ms", "80ms"))
    (line,) = imports.refused()
    assert f"old/a.txt: {imports.archive / CELL}/1.vegeta.txt exists with different content" in line


def test_a_run_is_imported_as_a_whole(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry())
    imports.run()
    imports.write("old/usage.log", foreign.SAMPLES)
    imports.declare(entry(), entry(files="old/usage.log"))
    (line,) = imports.refused()
    assert "old/usage.log: run 1 of shop/lab" in line and "was imported without it" in line and "rm '" in line


def test_metadata_that_say_something_else_are_never_replaced(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry(duration="60s"))
    imports.run()
    imports.declare(entry(duration="30s", version="12"))
    (line,) = imports.refused()
    assert 'testOptions is {"duration": "60s", "rate": "100"} there and {"duration": "30s", "rate": "100"} here' in line
    assert "generator is" in line and "Declare it as it was" in line and "rm -r /" in line
    shutil.rmtree(shlex.split(line.partition("rm -r ")[2])[0])
    imports.run()
    assert '"duration": "30s"' in next(imports.archive.rglob("metadata.json")).read_text()


def test_files_of_one_cell_must_not_contradict_one_another(imports, entry):
    imports.write("old/a.txt")
    imports.write("old/b.k6.txt", "http_req_duration...: avg=1ms\n")
    imports.declare(entry(files="old/a.txt"), entry(files="old/b*", load_model="open", run=2))
    (line,) = imports.refused()
    assert "generator is 'vegeta' of one file of shop" in line and "'k6' of old/b.k6.txt" in line


def test_what_nobody_says_is_not_guessed(imports, entry):
    imports.write("old/k6.txt", "http_req_duration...: avg=1ms\n")
    imports.write("old/table.hdr.csv", foreign.HDR)
    imports.write("old/usage.log", foreign.SAMPLES)
    imports.declare(
        entry(files="old/k6.txt"), entry(files="old/*.csv", variant="b"), entry(files="old/*.log", variant="c")
    )
    lines = sorted(imports.refused())
    assert "k6 supports several load models; declare which it was" in lines[0]
    assert "it is not known which load generator sent the requests" in lines[1]
    assert "no results of this run are imported; only samples" in lines[2] and len(lines) == 3


def test_a_campaign_of_a_sweep_is_left_alone(imports, entry):
    cell = rawfiles.write_cell(imports.archive, {}, app="shop", host="lab", variant="other")
    imports.write("old/a.txt")
    imports.declare(entry(timestamp=cell.campaign.timestamp))
    (line,) = imports.refused()
    assert "was not imported; imports need a campaign (timestamp) of their own" in line


@pytest.mark.parametrize("level", range(5))
def test_links_within_the_archive_are_not_followed(imports, entry, level):
    elsewhere = imports.folder / "elsewhere"
    elsewhere.mkdir()
    parts = CELL.split("/")
    folder = imports.archive.joinpath(*parts[:level])
    folder.mkdir(parents=True)
    (folder / parts[level]).symlink_to(elsewhere)
    imports.write("old/a.txt")
    imports.declare(entry())
    (line,) = imports.refused()
    assert "is a link, which may lead out of the archive" in line
    assert list(elsewhere.iterdir()) == []


def test_a_result_that_is_a_link_is_not_taken_for_the_file(imports, entry):
    source = imports.write("old/a.txt")
    imports.declare(entry())
    imports.run()
    (imports.archive / CELL / "1.vegeta.txt").unlink()
    (imports.archive / CELL / "1.vegeta.txt").symlink_to(source)
    assert "exists with different content" in imports.refused()[0]


def test_all_that_is_wrong_is_said_at_once(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry(rate="x"), entry(timestamp="x"), entry(files="none/*"), entry(variant="fine"))
    assert len(imports.refused()) == 3


def test_a_hostile_name_of_a_source_stays_on_one_line(imports, entry):
    imports.write("old/a\n  all is well.txt", "nothing")
    imports.declare(entry())
    (line,) = imports.refused()
    assert r"'old/a\n  all is well.txt': its format is not known" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{files: x}]", "app"),
        ("[{files: x, unknown: 1}]", "unknown"),
        ("{a: 1}", "top level"),
        ("[", "is not valid YAML"),
        ("[]", "declares nothing to import"),
        (
            "- {files: x, app: a, host: h, timestamp: t, variant: v, rate: 1, match: '('}",
            "entry 1: match is not a regular",
        ),
        ("- {files: x, app: a, host: h, timestamp: t, variant: v, rate: 1, load_model: fast}", "load_model"),
        (
            "- {files: x, app: a, host: h, timestamp: t, variant: v, rate: 1, format: exe}",
            "the format .exe. is none of markdown, results.json",
        ),
    ],
)
def test_a_broken_declaration(imports, text, said):
    (imports.folder / "config/imports.yaml").write_text(text)
    with pytest.raises(LoadstoneError, match=said.replace("(", r"\(")):
        imports.plan()


@pytest.mark.parametrize("other", ["2020-08-24T14:46:00Z", "2020-08-24T154600+0100", "2020-08-24T15:46+01:00"])
def test_a_second_spelling_of_a_moment(imports, entry, other):
    imports.write("old/a.txt")
    imports.declare(entry(), entry(timestamp=other, run=2))
    assert [line.partition(": old/a.txt: ")[2] for line in sorted(imports.refused())] == [
        f"2020-08-24T15:46:00+01:00 is the moment of shop/lab/{other}, which is declared too; write it the same way",
        f"{other} is the moment of shop/lab/2020-08-24T15:46:00+01:00, which is declared too; write it the same way",
    ]
    imports.declare(entry())
    imports.run()
    imports.declare(entry(timestamp=other))
    (line,) = imports.refused()
    assert line.endswith(
        "is the moment of shop/lab/2020-08-24T15:46:00+01:00, which is in the archive; write it the same way"
    )
    imports.declare(entry(timestamp=other, host="another"))
    imports.run()


def test_runs_and_users_are_written_in_plain_digits(one):
    (line,) = one(rate="٣")
    assert "not a positive number" in line
    (line,) = one(run="٣")
    assert "not a whole number" in line


def test_links_that_lead_out_of_an_imported_folder_are_named_and_not_followed(imports, entry, monkeypatch):
    monkeypatch.setenv(LINKS, "[]")
    for name in ("outside/private.txt", "outside/more/secret.txt", "old/a.txt", "old/kept/b.txt"):
        imports.write(name)
    Path("old/linked").symlink_to(imports.folder / "outside")
    Path("old/c.txt").symlink_to("../outside/private.txt")
    Path("old/d.txt").symlink_to("kept/b.txt")
    imports.declare(entry(files="old/**/*.txt", match="(?P<n>[a-z]+)[.]txt", variant="{n}"))
    refused = [line.removeprefix("config/imports.yaml, entry 1: ") for line in imports.refused()]
    assert [line.partition(": is a link that leads out of old and")[0] for line in refused] == [
        "old/c.txt",
        "old/linked",
    ]
    allow_links(["outside"])
    assert {run.cell.variant_dir for run in imports.plan().runs()} == {"a", "b", "c", "d", "private", "secret"}
