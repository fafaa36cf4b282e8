"""Trace dumps of Jaeger: its fields, its choice of a parent, files cut anywhere, memory."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone.readers import jaeger
from loadstone.readers.jaeger import DumpProblems, Span, Trace
from support.rawfiles import compress
from support.spans import dump, span, trace


def read(path: Path) -> tuple[list[Trace], list[str]]:
    problems = DumpProblems()
    return list(jaeger.read(path, problems)), problems.texts()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(compress(content) if path.suffix == ".zst" else content)
    return path


def traces_of(tmp_path: Path, content: object) -> list[Trace]:
    found, problems = read(written(tmp_path / "traces-1.json.zst", json.dumps(content).encode()))
    assert problems == []
    return found


@pytest.mark.parametrize("name", ["traces-1714682252555.json.zst", "traces-1714682252555.json"])
def test_every_field_of_a_span(tmp_path, name) -> None:
    spans = [
        span("a", 1000, 170_000, service="front", operation="GET /"),
        span("b", 2000, 70_000, "a", service="presidio", operation="POST /analyze", tags={"error": True}),
    ]
    found, problems = read(written(tmp_path / name, dump(trace("t1", spans))))
    assert problems == []
    assert found == [
        Trace(
            "t1",
            (
                Span("a", "", False, "front", "GET /", 1000, 170_000, False),
                Span("b", "a", False, "presidio", "POST /analyze", 2000, 70_000, True),
            ),
        )
    ]


def test_other_keys_and_any_order_and_layout(tmp_path) -> None:
    content = {
        "errors": [{"code": 400, "msg": 'a "quoted" { [ brace'}],
        "data": [trace("t1", [span("a", 1, 2)]), trace("t2", [span("b", 1, 2)])],
        "total": 0,
        "limit": 0,
        "other": {"data": [trace("t3", [])]},
    }
    path = written(tmp_path / "traces-1.json", json.dumps(content, indent=4).encode())
    found, problems = read(path)
    assert [each.trace_id for each in found] == ["t1", "t2"]
    assert problems == []


@pytest.mark.parametrize(
    ("references", "parent"),
    [
        ([], ("", False)),
        ([("CHILD_OF", "t", "x"), ("CHILD_OF", "t", "y")], ("x", False)),
        ([("FOLLOWS_FROM", "t", "x"), ("CHILD_OF", "t", "y")], ("y", False)),
        ([("FOLLOWS_FROM", "t", "x")], ("x", True)),
        ([("CHILD_OF", "another trace", "x")], ("", False)),
    ],
)
def test_the_parent_is_the_one_that_jaeger_takes(tmp_path, references, parent) -> None:
    raw = span("a", 1, 2)
    raw["references"] = [{"refType": kind, "traceID": of, "spanID": to} for kind, of, to in references]
    (found,) = traces_of(tmp_path, {"data": [trace("t", [raw])]})
    assert (found.spans[0].parent_id, found.spans[0].follows) == parent


def test_the_parent_of_old_dumps(tmp_path) -> None:
    (found,) = traces_of(tmp_path, {"data": [trace("t", [span("a", 1, 2) | {"parentSpanID": "x"}])]})
    assert found.spans[0].parent_id == "x"


def test_corrupt_traces_are_counted_and_the_others_kept(tmp_path) -> None:
    wrong = [
        trace("negative", [span("a", -1, 2)]),
        trace("text", [span("a", "soon", 2)]),
        trace("endless", [span("a", 1, 10**18)]),
        {"spans": []},
        {},
    ]
    content = json.dumps({"data": [trace("t1", []), *wrong, trace("t2", [])]}).encode()
    found, problems = read(written(tmp_path / "traces-1.json", content))
    assert [each.trace_id for each in found] == ["t1", "t2"]
    assert problems == ["holds 5 corrupt traces (numbers 2, 3, 4, 5, 6)"]


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b"not JSON", b'{"data": 3}', b'{"data": {"spans": []}}', b'{"spans": {"data": []}}', b"}"]
)
def test_what_is_no_dump_is_damaged(tmp_path, content) -> None:
    found, problems = read(written(tmp_path / "traces-1.json", content))
    assert found == []
    is_json = content not in (b"not JSON", b"}")
    said = "is damaged: it is not a valid Jaeger dump" if is_json else "is damaged: it is not valid JSON"
    assert len(problems) == 1 and problems[0].startswith(said)


def test_an_empty_dump_has_no_problem(tmp_path) -> None:
    assert traces_of(tmp_path, {"data": [], "total": 0}) == []


def test_an_empty_file_is_truncated(tmp_path) -> None:
    path = tmp_path / "traces-1.json.zst"
    path.write_bytes(b"")
    assert read(path) == ([], ["is truncated: it is empty"])


@pytest.mark.parametrize("compressed", [True, False])
def test_a_dump_cut_anywhere_keeps_whole_traces_and_says_so(tmp_path, compressed) -> None:
    content = dump(*(trace(f"t{number}", [span("a", 1, 2, operation="x" * number * 37)]) for number in range(30)))
    whole = compress(content) if compressed else content
    path = tmp_path / ("traces-1.json" + (".zst" if compressed else ""))
    kept = []
    for end in range(1, len(whole), 41):
        path.write_bytes(whole[:end])
        found, problems = read(path)
        kept.append(len(found))
        assert len(problems) == 1, (end, problems)
        assert problems[0].startswith(
            ("is truncated", "is damaged: it is not a valid Jaeger dump" if end < 9 or compressed else "?")
        )
        assert [each.trace_id for each in found] == [f"t{number}" for number in range(len(found))]
    assert kept == sorted(kept)


def test_what_cannot_be_opened_is_damaged(tmp_path) -> None:
    (problem,) = read(tmp_path / "traces-1.json")[1]
    assert problem.startswith("is damaged: it cannot be read")


@given(st.text(max_size=50), st.text(max_size=50))
def test_brackets_quotes_and_backslashes_in_texts(tmp_path_factory, service, operation) -> None:
    traces = [trace(f"t{number}", [span("a", 1, 2, service=service, operation=operation)]) for number in range(3)]
    found, problems = read(written(tmp_path_factory.mktemp("texts") / "traces-1.json", dump(*traces)))
    texts = [(each.trace_id, each.spans[0].service, each.spans[0].operation) for each in found]
    assert texts == [(f"t{number}", service, operation) for number in range(3)]
    assert problems == []


def test_traces_larger_than_the_buffer(tmp_path) -> None:
    long = trace("t1", [span("a", 1, 2, tags={"text": '{["\\' * 900_000})])
    found = traces_of(tmp_path, {"data": [long, trace("t2", [])]})
    assert [each.trace_id for each in found] == ["t1", "t2"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_values_nested_without_end(tmp_path, opening) -> None:
    for head in (b'{"data": [', b'{"other": '):
        found, problems = read(written(tmp_path / "traces-1.json", head + opening * 100_000))
        assert (found, problems) == ([], ["is damaged: its values are nested too deeply"])


def test_a_trace_beyond_all_bounds_ends_the_reading(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(jaeger, "LONGEST_TRACE_BYTES", 4 << 20)
    content = json.dumps({"data": [trace("t1", []), trace("t2", [span("a", 1, 2, operation="x" * (6 << 20))])]})
    found, problems = read(written(tmp_path / "traces-1.json", content.encode()))
    assert [each.trace_id for each in found] == ["t1"]
    assert problems == ["is damaged: a part of it is larger than 4 MiB"]
