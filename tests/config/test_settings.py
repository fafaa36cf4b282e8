"""The configuration: wrong values are named, and what is derived can't reach what is not."""

import socket
import time
from pathlib import Path

import pytest
import yaml
from conftest import PROJECT
from loadstone import config
from loadstone.config import yaml_files
from loadstone.errors import LoadstoneError
from loadstone.percentiles import STATISTICS


@pytest.fixture
def content() -> dict:
    return yaml.safe_load((PROJECT / "config/config.yaml").read_text())


@pytest.mark.parametrize(
    "folders",
    [
        {"reports": "results/archive"},
        {"tables": "results/archive/tables"},
        {"archive": "results/tables/archive"},
        {"tables": "reports", "reports": "reports"},
        {"archive": "."},
    ],
)
def test_archive_tables_and_site_are_kept_apart(content: dict, folders: dict) -> None:
    with pytest.raises(LoadstoneError, match="use separate folders"):
        config.check({**content, **folders})


def test_a_link_into_the_archive_is_seen_through(content: dict, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "archive")
    with pytest.raises(LoadstoneError, match="use separate folders"):
        config.check({**content, "archive": str(tmp_path / "archive"), "reports": str(tmp_path / "site")})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"archive": None}, "archive: null is given, but a text is expected"),
        ({"archive": ["a", "b"]}, r'archive: \["a", "b"\] is given, but a text is expected'),
        ({"tables": "a/{x}"}, "can't have any of"),
        ({"report": {"title": float("nan")}}, "neither text nor a number"),
        ({"nonsense": 1}, "nonsense"),
        ({"redact": ["token"]}, "redact: "),
        ({"redact": {"query": ["a=b"]}}, "redact.query.0"),
        ({"redact": {"query": ["mine"], "keep": ["mine", "another"]}}, "redact.keep lists another, which would not be"),
        ({"analysis": {"margin": "0%"}}, "analysis.margin"),
        ({"analysis": {"margin": 5}}, "analysis.margin"),
        ({"analysis": {"confidence": 95}}, "analysis.confidence"),
    ],
)
def test_wrong_values_are_named(content: dict, changes: dict, said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        config.check({**content, **changes})


def test_the_gate_takes_every_statistic_that_has_verdicts_and_no_other(content: dict) -> None:
    assert config.check({**content, "gate": {"statistics": list(STATISTICS)}})["gate"]["statistics"] == [*STATISTICS]
    with pytest.raises(LoadstoneError, match=r"gate.statistics: 'p98' is none of mean, p50, .*error_fraction"):
        config.check({**content, "gate": {"statistics": ["p50", "p98"]}})


@pytest.mark.parametrize(("declared", "share"), [("5%", 0.05), ("0.5%", 0.005), ("12.5%", 0.125), (0.1, 0.1)])
def test_a_margin_is_a_share_however_it_is_written(content: dict, declared: str | float, share: float) -> None:
    checked = config.check({**content, "analysis": {"margin": declared}})["analysis"]
    assert config.share(checked["margin"]) == pytest.approx(share)
    assert checked["confidence"] == 0.95
    assert config.check({name: value for name, value in content.items() if name != "analysis"})["analysis"]


def test_the_limit_of_send_lag_has_defaults_for_each_part(content: dict) -> None:
    for given, expected in (
        ({}, {}),
        ({"lag_limit": {"time": "2.5ms"}}, {"time_ns": 2.5e6}),
        ({"lag_limit": {"share": "25%"}}, {"share": 0.25}),
        ({"lag_limit": {"time": "0s", "share": 0.5}}, {"time_ns": 0, "share": 0.5}),
        ({"lag_limit": {"apart": "3ms"}}, {"apart_ns": 3e6}),
    ):
        defaults = {"time_ns": 2e6, "share": 0.1, "apart_ns": 10e6}
        assert config.lag_limit(config.check({**content, "analysis": given})) == defaults | expected
    for wrong in ({"time": 1}, {"share": "-1%"}, {"share": "ten"}, {"of": 1}):
        with pytest.raises(LoadstoneError, match=r"analysis\.lag_limit"):
            config.check({**content, "analysis": {"lag_limit": wrong}})


def test_an_empty_host_is_the_hostname_and_a_number_is_a_name(content: dict) -> None:

    assert config.check({**content, "host": None})["host"] == socket.gethostname()
    assert config.check({**content, "archive": 2024})["archive"] == "2024"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resources": {"every": "fast"}}, 'target.resources.every: "fast" is given'),
        ({"resources": {"namespaces": ["mesh"]}}, "namespaces"),
        (
            {"processes": {"generator": {"command": ["a"], "port": 1, "ready": "http://a"}}},
            'target.processes: "generator" is given, but a name other',
        ),
    ],
)
def test_what_is_wrong_with_sampling_is_named(content: dict, change: dict, said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        config.check({**content, "target": content["target"] | change})
    assert config.check({**content, "target": content["target"] | {"resources": {"every": "0s"}}})


QUOTED = 'a text (in quotes: "8080") is expected'
NO_ADDRESS = '"ftp://host" is given, but an address that begins with http:// or https:// is expected'
WRITTEN = """\
archive: a
tables: b
reports: c
sweep:
  app: x
  variants: [plain]
  rates: [100]
  runs: 2
  duration: 2
  oder: blocks
target:
  kind: local
  variants:
    plain: {url: ftp://ada:secret@host, expect: {status: 200, body_contains: x}}
  processes:
    app:
      port: 99999999
      command: [serve, 8080]
"""


def test_every_fault_names_its_key_its_line_what_is_given_and_what_is_expected(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config, "CONFIG", tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text(WRITTEN)
    with pytest.raises(LoadstoneError) as raised:
        config.check(yaml.safe_load(WRITTEN))
    assert str(raised.value).splitlines()[1:] == [
        "  sweep.oder (line 10): unknown key; did you mean order?",
        "  sweep.duration (line 9): the number 2 is given, but a duration such as 10s, 1m30s or 500ms is expected",
        "  target.processes.app (line 17): the key 'ready' is missing",
        "  target.processes.app.command.1 (line 18): the number 8080 is given, but " + QUOTED,
        "  target.processes.app.port (line 17): the number 99999999 is given, but at most 65535 is expected",
        "  target.variants.plain.url (line 14): " + NO_ADDRESS,
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"headers": {"X-Api-Key": 7777123477}},
            "headers.X-Api-Key: a text is expected .the value is not shown: it may be",
        ),
        ({"headers": {"Authorization": ["7777123477"]}}, "headers.Authorization: a text is expected"),
        ({"headers": "Authorization: 7777123477"}, "headers: a mapping is expected"),
    ],
)
def test_what_may_be_a_credential_is_not_shown(content: dict, changes: dict, said: str) -> None:
    content["target"]["variants"]["plain"] |= changes
    with pytest.raises(LoadstoneError, match=said) as raised:
        config.check(content)
    assert "7777123477" not in str(raised.value)


def test_names_that_file_systems_refuse_are_refused_first(content: dict) -> None:
    name, said = "\N{GRINNING FACE}" * 40, "at most 220 bytes is expected, and .* has 480, percent-encoded"
    with pytest.raises(LoadstoneError, match=f"host: .*{said}"):
        config.check({**content, "host": name})
    with pytest.raises(LoadstoneError, match=f"sweep.app: .*{said}"):
        config.check({**content, "sweep": content["sweep"] | {"app": name}})
    variants = content["target"]["variants"]
    variants[name] = variants["plain"]
    with pytest.raises(LoadstoneError, match=f"sweep.variants.1: .*{said}"):
        config.check({**content, "sweep": content["sweep"] | {"variants": ["plain", name]}})
    content["sweep"]["variants"] = ["plain", "\N{GRINNING FACE}" * 18, "\N{CYRILLIC SMALL LETTER SHORT I}" + "xy" * 29]
    content["target"]["variants"] |= dict.fromkeys(content["sweep"]["variants"], variants["plain"])
    assert config.check(content)["sweep"]["variants"] == content["sweep"]["variants"]


def test_a_value_of_the_command_line_has_no_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config, "CONFIG", tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text("archive: a\ntables: b\nreports: c\nreport: {}\n")
    with pytest.raises(LoadstoneError, match="report: the number 3 is given, but a mapping is expected"):
        config.check({"archive": "a", "tables": "b", "reports": "c", "report": 3})


@pytest.mark.parametrize(
    ("text", "where"),
    [("a: [b", "line [12],"), ("a: 1\n\tb: 2", "line 2, column 1"), ("a: 1\nb: x: y", "line 2, column 5")],
)
def test_broken_yaml_is_named_with_file_and_line(tmp_path, text: str, where: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(LoadstoneError, match=rf"config.yaml is not valid YAML \({where}"):
        yaml_files.readable(str(file))


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"publish": {}}, "publish: the key 'to' is missing"),
        ({"publish": {"to": "ftp"}}, "publish.to"),
        ({"publish": {"to": "folder"}}, "publish: the key 'path' is missing"),
        ({"publish": {"to": "folder", "path": "reports/www"}}, "must not lie in each other"),
        ({"publish": {"to": "folder", "path": "."}}, "must not lie in each other"),
        ({"publish": {"to": "branch", "remote": "https://me:hunter2@127.0.0.1/x"}}, "publish.remote names a user"),
        ({"publish": {"to": "branch", "remote": "--upload-pack=x"}}, "publish.remote"),
        ({"publish": {"to": "branch", "prefix": "../x"}}, "publish.prefix"),
        ({"publish": {"to": "s3", "bucket": "mine", "secret_key": "hunter2"}}, "publish.secret_key"),
        ({"storage": {}}, "storage: the key 'to' is missing"),
        ({"storage": {"to": "s3://mine/../x"}}, "storage.to"),
        ({"storage": {"to": "/srv/archive"}}, "storage.to"),
        ({"storage": {"to": "s3://mine", "secret_key": "hunter2"}}, "storage.secret_key"),
        ({"storage": {"to": "s3://mine", "endpoint": "http://me:hunter2@127.0.0.1"}}, "storage.endpoint names a user"),
        ({"figures": {"width": "8 parsec"}}, "figures.width"),
        ({"figures": {"font": "a;b"}}, "figures.font"),
        ({"figures": {"formats": []}}, "figures.formats"),
    ],
)
def test_what_can_not_be_published_or_drawn_is_named(content: dict, section: dict, said: str) -> None:
    with pytest.raises(LoadstoneError) as error:
        config.check({**content, **section})
    assert said in str(error.value) and "hunter2" not in str(error.value)


def test_many_faults_are_told_as_quickly_as_one(tmp_path: Path) -> None:
    path = tmp_path / "variants.yaml"
    path.write_text("shop:\n" + "".join(f"  v{number}: {{lable: x}}\n" for number in range(1000)))
    begun = time.process_time()
    with pytest.raises(LoadstoneError, match=r"shop\.v999\.lable \(line 1001\)"):
        config.load_variants(path)
    assert time.process_time() - begun < 20
