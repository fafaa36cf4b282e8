"""Naming what is declared otherwise since a campaign was opened, and keeping credentials out of the archive."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT
from loadstone import archive, config
from loadstone.archive import metadata
from loadstone.collect import sweep
from loadstone.config import redact, target
from loadstone.config import target as declared_target
from loadstone.errors import LoadstoneError

SECRET = "Bearer open-sesame"
URL = "http://127.0.0.1:9000/page?n=1&token=open-sesame&user=ada"


@pytest.fixture
def declared(tmp_path: Path) -> dict[str, Any]:
    settings = tmp_path / "server.conf"
    settings.write_text("workers 1")
    command = ["./server", "--config", str(settings), "--name", "a"]
    only = {"url": "http://127.0.0.1:9000/page", "processes": ["app"], "expect": {"status": 200, "body_contains": "x"}}
    only["headers"] = {"Authorization": SECRET, "X-Case": "1"}
    process = {
        "command": command,
        "port": 9000,
        "ready": "http://127.0.0.1:9000/",
        "environment": {"API_TOKEN": SECRET},
    }
    return {
        "archive": str(tmp_path / "archive"),
        "tables": str(tmp_path / "tables"),
        "reports": str(tmp_path / "reports"),
        "host": "here",
        "sweep": {"app": "app", "variants": ["only"], "rates": [10], "runs": 2, "duration": "1s"},
        "target": {"kind": "local", "processes": {"app": process}, "variants": {"only": only}},
    }


def opened(declared: dict[str, Any]) -> archive.Campaign:
    return sweep.open_sweep(config.check(declared), {}, lambda _: None)


def described(campaign: archive.Campaign) -> metadata.Metadata:
    (file,) = campaign.path.glob("*/*/metadata.json")
    return metadata.read(file)


def test_a_credential_is_in_no_file_of_the_archive_and_sent_all_the_same(declared) -> None:
    campaign = opened(declared)
    texts = [file.read_text() for file in campaign.path.rglob("*") if file.is_file()]
    assert texts and not any("open-sesame" in text for text in texts)
    written = json.loads(texts[0])
    assert written["req"]["header"]["X-Case"] == ["1"]
    assert declared_target.request(declared["target"]["variants"]["only"])["header"]["Authorization"] == [SECRET]
    assert declared_target.changes(described(campaign), declared["target"], "only") == []
    assert opened(declared) == campaign


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "variants.only.url",
            "http://127.0.0.1:9000/other",
            "request.url: 'http://127.0.0.1:9000/page' became 'http://127.0.0.1:9000/other'",
        ),
        ("variants.only.body", "a=1", "request.body: nothing became 'a=1'"),
        ("variants.only.headers.X-Case", "2", "request.header.X-Case: '1' became '2'"),
        ("variants.only.headers.Authorization", "Bearer x", "request.header.Authorization has changed"),
        ("variants.only.expect.body_contains", "y", "expect.body_contains: 'x' became 'y'"),
        ("processes.app.environment.API_TOKEN", "z", "the environment of the process app.API_TOKEN has changed"),
    ],
)
def test_the_part_that_changed_is_named(declared, path: str, value: str, said: str) -> None:
    planned = described(opened(declared))
    *parents, last = path.split(".")
    target = declared["target"]
    for name in parents:
        target = target[name]
    target[last] = value
    assert declared_target.changes(planned, declared["target"], "only") == [said]
    with pytest.raises(LoadstoneError) as raised:
        opened(declared)
    assert f"target variant only: {said}" in str(raised.value) and "open-sesame" not in str(raised.value)


def test_a_command_and_the_files_that_it_names(declared, tmp_path: Path) -> None:
    planned = described(opened(declared))
    (tmp_path / "server.conf").write_text("workers 2")
    said = f"the content of the file {tmp_path}/server.conf"
    assert declared_target.changes(planned, declared["target"], "only") == [f"{said} has changed"]
    (tmp_path / "server.conf").unlink()
    assert declared_target.changes(planned, declared["target"], "only") == [f"{said} is gone"]
    (tmp_path / "server.conf").write_text("workers 1")
    declared["target"]["processes"]["app"]["command"][-1] = "b"
    (phrase,) = declared_target.changes(planned, declared["target"], "only")
    assert phrase.startswith("the command of the process app: './server --config") and phrase.endswith("--name b'")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"runs": 3}, "sweep.runs: '2' became '3'"),
        ({"duration": "2s"}, "sweep.duration: '1s' became '2s'"),
        ({"rates": [10, 20]}, "sweep.rates: 20 is new"),
        ({"order": "fixed"}, "sweep.order: 'blocks' became 'fixed'"),
        ({"warmup": {"duration": "1s"}}, "sweep.warmup.duration: '0s' became '1s'"),
        ({"seed": 3}, "something that its metadata does not record"),
    ],
)
def test_a_changed_sweep_is_named(declared, change: dict[str, Any], said: str) -> None:
    opened(declared)
    with pytest.raises(LoadstoneError) as raised:
        opened({**declared, "sweep": {**declared["sweep"], **change}})
    assert said in str(raised.value)


def test_a_campaign_that_was_opened_with_its_credentials_goes_on(declared) -> None:
    """As before they were kept out: the archive holds them, and digests of the identity as it is."""
    campaign = opened(declared)
    (file,) = campaign.path.glob("*/*/metadata.json")
    content = json.loads(file.read_text())
    plain = copy.deepcopy(declared_target.variant_identity(declared["target"], "only"))
    content["req"] = plain.pop("request")
    content["target"] |= plain | {
        "identity": declared_target.digest(declared_target.variant_identity(declared["target"], "only")),
        "declaration": declared_target.digest(
            {"sweep": declared["sweep"], "target": declared_target.identity(declared["target"], ["only"])}
        ),
    }
    file.write_text(json.dumps(content))
    assert declared_target.changes(described(campaign), declared["target"], "only") == []
    assert opened(declared) == campaign
    declared["target"]["variants"]["only"]["headers"]["X-Case"] = "2"
    assert declared_target.changes(described(campaign), declared["target"], "only") == [
        "request.header.X-Case: '1' became '2'"
    ]


def test_what_cleans_up_may_be_mended(declared, tmp_path: Path) -> None:
    script = tmp_path / "undo.sh"
    script.write_text("exit 3")
    variant = {"url": "http://127.0.0.1:9000/", "expect": {"status": 200, "body_contains": "x"}}
    variant |= {"prepare": [["true"]], "cleanup": [["sh", str(script)]]}
    declared["target"] = {"kind": "external", "variants": {"only": variant}}
    campaign = opened(declared)
    script.write_text("exit 0")
    variant["cleanup"] = [["sh", str(script)], ["true"]]
    assert declared_target.changes(described(campaign), declared["target"], "only") == []
    assert opened(declared) == campaign
    variant["prepare"] = [["false"]]
    assert declared_target.changes(described(campaign), declared["target"], "only")


def test_a_file_that_is_named_first_now_has_not_changed(declared, tmp_path: Path) -> None:
    planned = described(opened(declared))
    another = tmp_path / "more.conf"
    another.write_text("x")
    declared["target"]["processes"]["app"]["command"].append(str(another))
    phrases = declared_target.changes(planned, declared["target"], "only")
    assert f"the content of the file {another} was not recorded" in phrases
    (cell,) = (each.cell for each in archive.scan_campaign(next(archive.campaigns(tmp_path / "archive"))).cells)
    with pytest.raises(LoadstoneError, match="remove the campaign, which has no result yet"):
        declared_target.check_declared([cell], declared["target"])


def test_metadata_that_are_not_as_written_do_no_harm(declared) -> None:
    planned = described(opened(declared))
    planned.request, planned.target = {"header": 3}, {"commands": [], "identity": "x", "files": 7}
    assert declared_target.changes(planned, declared["target"], "only")


def test_credentials_of_other_names_and_of_addresses_are_in_no_file_either(declared) -> None:
    names = (
        "PASS",
        "DB_PASS",
        "MYSQL_PWD",
        "X-Functions-Key",
        "SSH_PASSPHRASE",
        "AWS_ACCESS_KEY_ID",
        "TLS_PRIVATE_KEY",
        "JWT",
        "SessionId",
    )
    plain = {"LOG_LEVEL": "keyboard-pass", "BYPASS": "keyboard-pass"}
    declared["target"]["processes"]["app"]["environment"] = {
        **dict.fromkeys(names, "open-sesame"),
        "DATABASE_URL": "postgres://ada:open-sesame@db/shop",
        **plain,
    }
    headers = dict.fromkeys(("X-Auth", "X-Auth-Key", "Ocp-Apim-Subscription-Key", "Bearer"), "open-sesame")
    declared["target"]["variants"]["only"]["headers"] = headers | {"Referer": "http://ada:open-sesame@shop/"}
    campaign = opened(declared)
    (text,) = [file.read_text() for file in campaign.path.rglob("metadata.json")]
    assert "open-sesame" not in text and text.count("redacted ") == len(names) + 1 + len(headers) + 1
    assert plain.items() <= json.loads(text)["target"]["environments"]["app"].items()
    declared["target"]["variants"]["only"]["headers"]["Referer"] = "http://ada:other@shop/"
    (said,) = declared_target.changes(described(campaign), declared["target"], "only")
    assert said.startswith("request.header.Referer") and "other" not in said


def test_a_credential_in_a_patch_of_a_deployment_is_recorded_as_a_mark() -> None:
    env = [{"name": "API_TOKEN", "value": SECRET}, {"name": "MODE", "value": "fast"}]
    env += [{"name": "PEER", "value": "http://ada:open-sesame@peer/"}, {"name": "PIN_TOKEN", "value": 4711}]
    env += [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "token"}}}]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}}}
    identity = {
        "request": {"header": {}},
        "cluster": {"changes": [{"deployment": "app", "patch": patch, "env": {"app": {"A_TOKEN": SECRET}}}]},
    }
    (change,) = target.recordable(identity)["cluster"]["changes"]
    assert "sesame" not in json.dumps(change) and "4711" not in json.dumps(change)
    (container,) = change["patch"]["spec"]["template"]["spec"]["containers"]
    assert container["env"][1] == env[1] and container["env"][4] == env[4] and container["name"] == "app"
    assert target.recordable({**identity, "cluster": {"changes": [change]}})["cluster"]["changes"] == [change]
    for each in (change["patch"], patch):
        assert str(redact.inside(each, redact.hidden)).count("'(redacted)'") >= 2
    assert "http://peer/" in str(redact.inside(patch, redact.hidden))


@pytest.mark.parametrize("where", ["url", "ready"])
def test_an_address_with_a_password_is_refused_without_showing_it(declared, where: str) -> None:
    part = declared["target"]["variants"]["only"] if where == "url" else declared["target"]["processes"]["app"]
    part[where] = "http://ada:open-sesame@127.0.0.1:9000/page"
    with pytest.raises(LoadstoneError) as raised:
        config.check(declared)
    assert f"{where}: names a user" in str(raised.value) and "headers" in str(raised.value)
    assert "open-sesame" not in str(raised.value) and "ada" not in str(raised.value)


def test_marks_tell_credentials_apart_and_not_what_they_are() -> None:
    mark = redact.mark("Authorization", SECRET)
    assert mark == redact.mark("authorization", SECRET) == redact.mark("Authorization", mark)
    assert mark != redact.mark("Authorization", "Bearer other") and "sesame" not in mark
    assert redact.marked({"Cookie": ["a", "b"], "Accept": "c"})["Accept"] == "c"
    assert redact.hidden({"X-Api-Key": "k", "Authorization": [mark]}) == {
        "X-Api-Key": "(redacted)",
        "Authorization": ["(redacted)"],
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a:b@host/x?y=a@b", "http://host/x?y=a@b"),
        ("--up=https://a@host:1/", "--up=https://host:1/"),
        ("http://p@ss:w@ord@host", "http://host"),
        ("mail a@b and http://host/@x", "mail a@b and http://host/@x"),
    ],
)
def test_users_in_addresses_are_not_shown(text: str, shown: str) -> None:
    assert redact.text(text) == shown


def test_users_in_addresses_are_not_archived(declared) -> None:
    removed = redact.Removed()
    line = rb'{"a": "http://u:pass@host/?token=t&x=1", "b": "HTTPS:\/\/u:pass@host", "c": "mail a@b"}'
    assert redact.names().encoded(line, removed) == (
        rb'{"a": "http://redacted@host/?token=redacted&x=1", "b": "HTTPS:\/\/redacted@host", "c": "mail a@b"}'
    )
    assert removed.fields() == {"query": {"token": 1, "user@": 2}}
    url = "http://u:open-sesame@host/"
    declared["target"]["processes"]["app"]["command"] += [url]
    declared["target"]["variants"]["only"]["expect"] = {"status": 200, "headers": {"Location": url}}
    declared["sweep"]["labels"] = {"docs": url}
    campaign = opened(declared)
    (file,) = campaign.path.glob("*/*/metadata.json")
    written = json.loads(file.read_text())
    marked = f"http://{redact.mark('user@', 'u:open-sesame').replace(' ', '-')}@host/"
    assert "open-sesame" not in file.read_text() and written["labels"] == {"docs": marked}
    assert written["target"]["commands"]["app"][-1] == written["target"]["expect"]["headers"]["Location"] == marked
    assert opened(declared) == campaign
    assert redact.marked_text(marked) == marked


def test_parameters_of_urls_are_marks_and_the_campaign_goes_on_whatever_redact_is_then(declared, monkeypatch) -> None:
    declared["target"]["variants"]["only"] |= {"url": URL}
    declared["target"]["processes"]["app"]["command"] += [f"--peer={URL}"]
    campaign = opened(declared)
    (file,) = campaign.path.glob("*/*/metadata.json")
    written = json.loads(file.read_text())
    assert "open-sesame" not in file.read_text()
    mark = redact.mark("token", "open-sesame").replace(" ", "-")
    assert written["req"]["url"] == URL.replace("open-sesame", mark)
    assert written["target"]["commands"]["app"][-1] == f"--peer={written['req']['url']}"
    assert written["target"]["redacted"] == {"headers": {"Authorization": 1}, "query": {"token": 1}}
    monkeypatch.setenv("LOADSTONE_REDACT", json.dumps({"headers": ["X-Case"], "query": ["user"]}))
    assert opened(declared) == campaign
    assert declared_target.changes(described(campaign), declared["target"], "only") == []
    declared["target"]["variants"]["only"]["url"] = URL.replace("open-sesame", "shut-sesame")
    phrases = declared_target.changes(described(campaign), declared["target"], "only")
    assert phrases == ["request.url has changed"]


def test_a_campaign_opened_before_redact_goes_on_as_it_is(declared, monkeypatch) -> None:
    declared["target"]["variants"]["only"] |= {"url": URL, "headers": {"Referer": URL}}
    declared["target"]["variants"]["only"]["expect"]["headers"] = {"Set-Cookie": "sid=1"}
    with monkeypatch.context() as earlier:
        earlier.setenv("LOADSTONE_REDACT", json.dumps({"headers": [], "query": []}))
        campaign = opened(declared)
    (file,) = campaign.path.glob("*/*/metadata.json")
    written = json.loads(file.read_text())
    del written["target"]["redact"], written["target"]["redacted"]
    assert written["req"]["url"] == URL and written["target"]["expect"]["headers"] == {"Set-Cookie": "sid=1"}
    file.write_text(json.dumps(written))
    assert opened(declared) == campaign
    assert declared_target.changes(described(campaign), declared["target"], "only") == []
    declared["target"]["variants"]["only"]["url"] = URL.replace("open-sesame", "shut-sesame")
    with pytest.raises(LoadstoneError, match=r"request.url has changed") as refused:
        opened(declared)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("http://h/?a=1&token=open&b=2#x", "http://h/?a=1&token=redacted&b=2#x"),
        ("http://h/p;jsessionid=open?x=1", "http://h/p;jsessionid=redacted"),
        ("http://h/#access_token=open&x=1", "http://h/#access_token=redacted&x=1"),
        ("http://h/?ApiKey=open&API-Key=open", "http://h/?ApiKey=redacted&API-Key=redacted"),
        ("http://h/?to%6Ben=open&api%5Fkey=open", "http://h/?to%6Ben=redacted&api%5Fkey=redacted"),
        ("http://h/?token[]=open&token%5B0%5D=open", "http://h/?token[]=redacted&token%5B0%5D=redacted"),
        ('Get "http://h/?sig=open": EOF', 'Get "http://h/?sig=redacted": EOF'),
        (r'{"url":"http://h/?a=1\u0026sig=open\u0026b=2"}', r'{"url":"http://h/?a=1\u0026sig=redacted\u0026b=2"}'),
        (r'{"error":"Get \"http://h/?sig=open\": EOF"}', r'{"error":"Get \"http://h/?sig=redacted\": EOF"}'),
        ("http://h/?mytoken=1&tokens=2&code=3&q=token", "http://h/?mytoken=1&tokens=2&code=3&q=token"),
        ("http://h/?token=", "http://h/?token=redacted"),
        ("http://h/?to=http%3A%2F%2Fh%2F%3Fsig%3Dopen&b=2", "http://h/?to=http%3A%2F%2Fh%2F%3Fsig%3Dredacted&b=2"),
        ("http://h/?to=%2f%3fa%3d1%26sig%3dopen", "http://h/?to=%2f%3fa%3d1%26sig%3dredacted"),
        ("http://h/login/http%3A%2F%2Fh%2F%3Fsig%3Dopen", "http://h/login/http%3A%2F%2Fh%2F%3Fsig%3Dredacted"),
    ],
)
def test_what_of_a_url_is_redacted(text: str, redacted: str) -> None:
    assert redact.text(text) == redacted
    assert redact.names().encoded(text.encode(), redact.Removed()) == redacted.encode()
    assert redact.text(redact.marked_text(text)) == redacted


def test_names_are_added_and_kept() -> None:
    names = redact.Names.of({"headers": ["x-tenant"], "query": ["customer_id"], "keep": ["KEY", "set_cookie"]})
    assert names.text("?customer-id=1&key=2&token=3") == "?customer-id=redacted&key=2&token=redacted"
    assert names.has_header("X-Tenant") and names.has_header("Cookie") and not names.has_header("Set-Cookie")
    assert redact.Names((), ()).text("?token=1") == "?token=1"


def test_the_documents_list_the_names() -> None:
    text = (PROJECT / "docs/targets.md").read_text()
    for part, names in (("headers", redact.HEADERS), ("parameters", redact.QUERY)):
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {part} | ")]
        assert row == f"| {part} | {', '.join(f'`{name}`' for name in names)} |"
