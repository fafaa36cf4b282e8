"""k6's raw outputs, JSON and CSV: the same requests, and those that k6 itself sums up."""

import csv
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from loadstone.readers import k6_raw, k6_summary, k6_text
from loadstone.readers.base import Problems
from loadstone.readers.k6_raw import K6_SCHEMA
from readers.damage import HOSTILE, cuts
from support import arrow, rawfiles, samples

READERS = {"json": k6_raw.read_json, "csv": k6_raw.read_csv}


def read(path: Path) -> tuple[pa.Table, Problems]:
    problems = Problems()
    batches = list(READERS[path.name.removesuffix(".zst").rpartition(".")[2]](path, problems))
    assert all(batch.schema == K6_SCHEMA for batch in batches)
    return pa.Table.from_batches(batches, K6_SCHEMA), problems


def written(tmp_path: Path, content: bytes, name: str) -> Path:
    path = tmp_path / f"1.k6.{name}"
    path.write_bytes(content)
    return path


def sample(tmp_path: Path, name: str) -> Path:
    return written(tmp_path, samples.content(name), name)


def whole(path: Path) -> pa.Table:
    table, problems = read(path)
    assert problems.texts() == []
    return table


# --- the four outputs of one run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["open", "closed"])
def test_json_and_csv_tell_of_the_same_requests(tmp_path, run):
    from_json, from_csv = whole(sample(tmp_path, f"{run}.k6.json")), whole(sample(tmp_path, f"{run}.k6.csv"))
    assert from_csv.drop_columns("sent_at") == from_json.drop_columns("sent_at")
    # A CSV tells the second in which a request ended, so its start is less than a second too early, never too late.
    early_ns = arrow_ns(from_json) - arrow_ns(from_csv)
    assert early_ns.min() >= 0
    assert early_ns.max() < 10**9


def arrow_ns(table: pa.Table) -> np.ndarray:
    return table["sent_at"].cast(pa.int64()).to_numpy()


@pytest.mark.parametrize("run", ["open", "closed"])
def test_k6s_own_figures_follow_from_the_requests(tmp_path, run):
    latency_ns = whole(sample(tmp_path, f"{run}.k6.json"))["latency_ns"].to_numpy()
    problems = Problems()
    exact = k6_summary.report(sample(tmp_path, f"{run}.k6.summary.json"), problems).summary
    printed = k6_text.report(sample(tmp_path, f"{run}.k6.txt"), problems).summary
    assert problems.texts() == []
    assert set(exact) == set(printed)
    assert exact["requests"] == printed["requests"] == len(latency_ns)
    assert exact["success"] == printed["success"]
    computed = {"mean_ns": latency_ns.mean(), "min_ns": latency_ns.min(), "max_ns": latency_ns.max()}
    computed |= {f"p{p}_ns": np.percentile(latency_ns, p) for p in (50, 90, 95, 99)}
    for column in exact.keys() - {"requests", "success"}:
        assert exact[column] == pytest.approx(computed[column], rel=1e-12)
        # The text is cut off behind two decimals of its unit, here ms or µs.
        assert 0 <= exact[column] - printed[column] < (10_000 if exact[column] >= 1e6 else 10) + 1e-3


def test_every_point_of_the_file_by_an_independent_decoder(tmp_path):
    points = [json.loads(line) for line in samples.content("open.k6.json").splitlines()]
    expected = [point["data"] for point in points if (point["type"], point["metric"]) == ("Point", "http_req_duration")]
    found = arrow.rows(whole(sample(tmp_path, "open.k6.json")))
    assert [row["latency_ns"] / 1e6 for row in found] == [data["value"] for data in expected]
    assert [str(row["code"]) for row in found] == [data["tags"]["status"] for data in expected]
    assert [row["error"] for row in found] == [data["tags"].get("error", "") for data in expected]
    for row, data in zip(found, expected, strict=True):
        ended_ns = row["sent_at"] + row["latency_ns"]
        assert data["time"].startswith(str(np.datetime64(ended_ns, "ns")).rstrip("0"))
    assert [row["seq"] for row in found] == list(range(len(found)))


def test_sent_at_is_the_start_although_k6_stamps_the_end(tmp_path):
    # One request after the other: each starts after the one before has ended, and not long after.
    content = samples.content("closed.k6.json").splitlines(keepends=True)
    one_user = [line for line in content if b'"scenario":"others"' not in line]
    found = arrow.rows(whole(written(tmp_path, b"".join(one_user), "json")))
    gaps = Counter()
    for row in found:
        gaps[any(row["sent_at"] >= other["sent_at"] + other["latency_ns"] for other in found)] += 1
    assert gaps == {False: 3, True: 21}, "three users begin, 24 requests"


def test_setup_and_teardown_are_phases_of_their_own_and_scenarios_too(tmp_path):
    phases = Counter(whole(sample(tmp_path, "open.k6.json"))["phase"].to_pylist())
    assert phases.pop("setup") == phases.pop("teardown") == 1
    assert list(phases) == ["steady"]
    assert Counter(whole(sample(tmp_path, "closed.k6.csv"))["phase"].to_pylist()) == {"users": 24, "others": 8}


def test_a_group_of_a_scenario_that_is_called_setup_is_of_its_scenario(tmp_path):
    line = samples.content("closed.k6.json").replace(b'"group":""', b'"group":"::setup"')
    assert set(whole(written(tmp_path, line, "json"))["phase"].to_pylist()) == {"users", "others"}


def test_the_resolution_of_a_csvs_clock(tmp_path):
    def said(path: Path) -> dict:
        return k6_raw.csv_report(path, Problems()).facts

    assert said(sample(tmp_path, "closed.k6.csv")) == {"clock_resolution_ns": "1000000000"}
    assert said(sample(tmp_path, "micro.k6.csv")) == {"clock_resolution_ns": "1000"}
    with_micro = whole(sample(tmp_path, "micro.k6.csv"))
    assert {sent_at % 1000 for sent_at in (arrow_ns(with_micro) + with_micro["latency_ns"].to_numpy()).tolist()} == {0}


@pytest.mark.parametrize(
    ("stamp", "resolution_ns"),
    [
        ("1795262400", 10**9),
        ("1795262400000", 10**6),
        ("1795262400000000", 1000),
        ("1795262400000000000", 1),
        ("2026-11-21T12:00:00Z", 10**9),
        ("2026-11-21T08:00:00.000000000-04:00", 1),
    ],
)
def test_every_form_of_time_is_the_same_instant(tmp_path, stamp, resolution_ns):
    path = written(
        tmp_path, f"metric_name,timestamp,metric_value,status\nhttp_req_duration,{stamp},0.5,200\n".encode(), "csv"
    )
    assert arrow.rows(whole(path))[0]["sent_at"] == 1795262400 * 10**9 - 500_000
    assert k6_raw.csv_report(path, Problems()).facts["clock_resolution_ns"] == str(resolution_ns)


# --- other shapes of the same ----------------------------------------------------------------------------------------


def test_lines_of_before_0_40_have_the_metrics_name_last(tmp_path):
    content = samples.content("open.k6.json")
    lines = [json.loads(line) for line in content.splitlines()]
    old = [{"type": line["type"], "data": line["data"], "metric": line["metric"]} for line in lines]
    encoded = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in old).encode()
    assert whole(written(tmp_path, encoded, "json")) == whole(sample(tmp_path, "open.k6.json"))


@pytest.mark.parametrize("name", ["open.k6.json", "open.k6.csv"])
def test_windows_line_ends_a_byte_order_mark_and_compression(tmp_path, name):
    content = samples.content(name)
    expected = whole(sample(tmp_path, name))
    suffix = name.rpartition(".")[2]
    marked = content if suffix == "json" else b"\xef\xbb\xbf" + content
    assert whole(written(tmp_path, marked.replace(b"\n", b"\r\n"), f"other.{suffix}")) == expected
    assert whole(written(tmp_path, rawfiles.compress(content), f"{suffix}.zst")) == expected


def test_lines_that_somebody_wrote_anew(tmp_path):
    content = samples.content("open.k6.json")
    spaced = "".join(json.dumps(json.loads(line)) + "\n" for line in content.splitlines()).encode()
    assert whole(written(tmp_path, spaced, "json")) == whole(sample(tmp_path, "open.k6.json"))


def test_tags_that_were_switched_off_leave_the_code_unknown(tmp_path):
    path = written(tmp_path, b"metric_name,timestamp,metric_value\nhttp_req_duration,1795262400,2\n", "csv")
    assert arrow.rows(whole(path)) == [
        {
            "seq": 0,
            "sent_at": 1795262400 * 10**9 - 2_000_000,
            "latency_ns": 2_000_000,
            "code": None,
            "error": "",
            "bytes_out": None,
            "bytes_in": None,
            "phase": None,
            "ok": False,
        }
    ]


def test_an_error_code_stands_in_for_an_error_that_was_not_recorded(tmp_path):
    content = samples.content("open.k6.json").replace(b'"error":"EOF",', b"")
    errors = Counter(whole(written(tmp_path, content, "json"))["error"].to_pylist())
    assert set(errors) == {"", "error_code 1000"}, "those of 404 (1404) say no more than the code"


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", READERS)
def test_an_empty_file(tmp_path, suffix):
    assert read(written(tmp_path, b"", suffix))[1].texts() == ["is truncated: it is empty"]


@pytest.mark.parametrize("name", ["open.k6.json", "open.k6.csv"])
def test_a_file_cut_anywhere_keeps_what_came_before(tmp_path, name):
    content, expected = samples.content(name), whole(sample(tmp_path, name))
    for cut in cuts(content, 100)[1:]:
        table, problems = read(written(tmp_path, cut, name))
        assert table == expected.slice(0, len(table))
        # A cut between two requests can't be seen in the file.
        requests = cut[: cut.rfind(b"\n") + 1].count(b"http_reqs") - (b'"type":"Metric"' in cut) * 2
        assert problems.texts() or len(table) == max(0, requests)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("suffix", READERS)
def test_other_content_under_the_suffix_is_told(tmp_path, name, suffix):
    table, problems = read(written(tmp_path, HOSTILE[name], suffix))
    assert len(table) == 0
    assert problems.texts() != []
    assert k6_raw.csv_report(written(tmp_path, HOSTILE[name], "csv"), Problems()) is None


GOOD = (
    b'{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-21T12:00:00.5Z","value":7.25,'
    b'"tags":{"status":"200","scenario":"s"}}}\n'
)
CORRUPT_LINES = {
    "cut": GOOD[:-20] + b"\n",
    "two merged": GOOD[:60] + GOOD,
    "zeros": bytes(300) + b"\n",
    "text": b"hello\n",
    "an array": b'["http_req_duration"]\n',
    "NaN": GOOD.replace(b"7.25", b"NaN"),
    "Infinity": GOOD.replace(b"7.25", b"Infinity"),
    "beyond floats": GOOD.replace(b"7.25", b"1e999"),
    "beyond 64 bits": GOOD.replace(b"7.25", b"9" * 30),
    "negative": GOOD.replace(b"7.25", b"-1"),
    "a decimal comma": GOOD.replace(b"7.25", b"7,25"),
    "a text": GOOD.replace(b"7.25", b'"7.25"'),
    "no time": GOOD.replace(b"2026-11-21T12:00:00.5Z", b"noon"),
    "no such day": GOOD.replace(b"11-21", b"02-30"),
    "no such second": GOOD.replace(b"12:00:00", b"12:00:61"),
    "before 1900": GOOD.replace(b"2026", b"0001"),
    "a status that is none": GOOD.replace(b'"200"', b'"2OO"'),
    "a status beyond 32 bits": GOOD.replace(b'"200"', b'"20000000000"'),
    "a status that is a number": GOOD.replace(b'"200"', b"200"),
    "tags that are none": GOOD.replace(b'{"status":"200","scenario":"s"}', b"[]"),
    "half a surrogate pair": GOOD.replace(b'"s"', b'"\\ud800"'),
    "no UTF-8": GOOD.replace(b'"s"', b'"\xff"'),
    "deep": b'{"http_req_duration":' * 50_000 + b"\n",
    "deep tags": GOOD.replace(b'"s"', b'"s","x":' + b"[" * 50_000),
}


@pytest.mark.parametrize("line", CORRUPT_LINES.values(), ids=CORRUPT_LINES)
def test_a_corrupt_line_is_counted_and_named_and_the_others_are_read(tmp_path, line):
    table, problems = read(written(tmp_path, GOOD + b"\n" + line + GOOD, "json"))
    assert table["latency_ns"].to_pylist() == [7_250_000, 7_250_000]
    assert problems.texts() == ["holds 1 corrupt record (line 3)"]


HEADER = b"metric_name,timestamp,metric_value,error,status\n"
GOOD_RECORD = b"http_req_duration,1795262400,7.25,,200\n"
CORRUPT_RECORDS = {
    "cut": b"http_req_duration,17952\n",
    "a decimal comma": b"http_req_duration,1795262400,7,25,,200\n",
    "NaN": b"http_req_duration,1795262400,NaN,,200\n",
    "Infinity": b"http_req_duration,1795262400,+Inf,,200\n",
    "an exponent": b"http_req_duration,1795262400,1e999,,200\n",
    "beyond 64 bits": b"http_req_duration,1795262400," + b"9" * 30 + b",,200\n",
    "negative": b"http_req_duration,1795262400,-1,,200\n",
    "no time": b"http_req_duration,,1,,200\n",
    "a time of eleven digits": b"http_req_duration,17952624001,1,,200\n",
    "a time beyond 64 bits": b"http_req_duration,9999999999999999999,1,,200\n",
    "other digits": "http_req_duration,١٧٩٥٢٦٢٤٠٠,1,,200\n".encode(),
    "a status that is none": b"http_req_duration,1795262400,1,,OK\n",
    "a quote in the middle": b'http_req_duration,1795262400,1,"a"b,200\n',
}


@pytest.mark.parametrize("record", CORRUPT_RECORDS.values(), ids=CORRUPT_RECORDS)
def test_a_corrupt_record_is_counted_and_named_and_the_others_are_read(tmp_path, record):
    table, problems = read(written(tmp_path, HEADER + GOOD_RECORD + record + GOOD_RECORD, "csv"))
    assert table["latency_ns"].to_pylist() == [7_250_000, 7_250_000]
    assert problems.texts() == ["holds 1 corrupt record (line 3)"]


def test_hostile_texts_are_only_texts(tmp_path):
    hostile = "<script>\"\u0000\u2028\n'; DROP TABLE requests; --"
    out = io.StringIO()
    rows = [["metric_name", "timestamp", "metric_value", "error", "status"]]
    csv.writer(out).writerows([*rows, ["http_req_duration", "1795262400", "1", hostile, "0"]])
    from_csv = whole(written(tmp_path, out.getvalue().encode(), "csv"))
    line = GOOD.replace(b'"200"', b'"0","error":' + json.dumps(hostile).encode())
    from_json = whole(written(tmp_path, line, "json"))
    assert from_csv["error"].to_pylist() == from_json["error"].to_pylist() == [hostile]


@pytest.mark.parametrize(("name", "old", "new"), [
    ("open.k6.json", b'{"metric":"http_req_duration","type":"Point"', b'{"metric":"http_req_duratiom","type":"Point"'),
    ("open.k6.csv", b"\nhttp_req_duration,", b"\nhttp_req_duratiom,"),
])  # fmt: skip
def test_a_request_whose_duration_was_lost_is_told(tmp_path, name, old, new):
    content = samples.content(name)
    requests = len(whole(sample(tmp_path, name)))
    _, problems = read(written(tmp_path, content.replace(old, new, 1), name))
    assert problems.texts() == [f"is damaged: it counts {requests} requests and holds the durations of {requests - 1}"]


def test_a_tag_that_is_called_like_a_metric_is_none(tmp_path):
    line = GOOD.replace(b'"metric":"http_req_duration"', b'"metric":"checks"').replace(b'"s"', b'"http_req_duration"')
    assert len(whole(written(tmp_path, line + GOOD, "json"))) == 1
