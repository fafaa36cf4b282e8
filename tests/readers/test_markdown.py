"""Results cut out of Markdown documents."""

from pathlib import Path

import pytest
from loadstone.readers import Problems, markdown

REPORT = """\
Requests      [total, rate, throughput]  {0}, 1.00, 1.00
Latencies     [mean, 50, 95, 99, max]    1ms, 1ms, 1ms, 1ms, 1ms
"""
TABLE = """\
Namespace   CPU_min   CPU_max
nginx       1m        2m
TOTAL       1m        2m
"""
K6 = """\
     data_received..................: 1.2 MB 20 kB/s
     http_req_duration..............: avg=98.7ms   min=10.79ms  med=94.62ms
     iterations.....................: 90     1.5/s
"""


def cut(text: str | bytes):
    """The blocks of a document, and what was wrong with it."""
    problems = Problems()
    content = text.encode() if isinstance(text, str) else text
    found = markdown.cut(content, problems)
    for block in found:
        assert content[block.start :].startswith(block.text)
        assert content[: block.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") == block.line - 1
    return found, problems.texts()


def fenced(text: str, fence: str = "```", info: str = "") -> str:
    return f"{fence}{info}\n{text}{fence}\n"


def test_blocks_under_their_headings() -> None:
    text = f"""# Results

## 200 requests/s

{fenced(REPORT.format(1))}
{fenced(TABLE, info="text")}
Some words.

{fenced(REPORT.format(2), "~~~~")}
### Again ###

{fenced(K6, info="console title=`no`").replace("`no`", "no")}
## 500 requests/s
{fenced(REPORT.format(3))}
"""
    found, problems = cut(text)
    assert problems == []
    assert [(block.kind, block.headings, block.number) for block in found] == [
        ("vegeta.txt", ("Results", "200 requests/s"), 1),
        ("resource-summary.txt", ("Results", "200 requests/s"), 1),
        ("vegeta.txt", ("Results", "200 requests/s"), 2),
        ("k6.txt", ("Results", "200 requests/s", "Again"), 1),
        ("vegeta.txt", ("Results", "500 requests/s"), 1),
    ]
    assert [block.text.decode() for block in found] == [REPORT.format(1), TABLE, REPORT.format(2), K6, REPORT.format(3)]


def test_headings_of_equal_text_count_on() -> None:
    found, _ = cut(f"# Same\n{fenced(REPORT)}# Other\n{fenced(REPORT)}# Same\n{fenced(REPORT)}")
    assert [(block.headings, block.number) for block in found] == [(("Same",), 1), (("Other",), 1), (("Same",), 2)]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("Title\n=====\n\nPart of\ntwo lines\n---\n", ("Title", "Part of two lines")),
        ("---\ntitle: x\n---\n# A\n", ("A",)),
        ("# A\n\n---\n", ("A",)),
        ("# A\n\n| a | b |\n|---|---|\n", ("A",)),
        ("# A\n- item\n---\n", ("A",)),
        ("#no heading\n# A #\n#### B ## c\n", ("A", "B ## c")),
        ("# A\n### C\n## B\n", ("A", "B")),
        ("#\n", ("",)),
        ("# a *b* `c` <script>\n", ("a *b* `c` <script>",)),
        ("####### seven\n", ()),
        ("    # code\n", ()),
    ],
)
def test_headings(text, headings) -> None:
    (block,), _ = cut(f"{text}\n{fenced(REPORT)}")
    assert block.headings == headings


def test_headings_within_code_are_none() -> None:
    (block,), _ = cut(f"# A\n```sh\n# install\n~~~\n## more\n````x\n```\n\n{fenced(REPORT)}")
    assert block.headings == ("A",)


@pytest.mark.parametrize("fence", ["```", "````````", "~~~", "~~~~~"])
def test_a_fence_is_closed_by_its_like_only(fence) -> None:
    other = "~~~" if fence[0] == "`" else "```"
    text = f"{fence}\n{REPORT}{fence[:-1]}\n{fence} no end\n{other}\n{fence}{fence[0]}\n# A\n"
    (block,), problems = cut(text)
    assert problems == []
    assert block.text.decode().startswith(REPORT)
    assert block.text.decode().count("\n") == 5


def test_code_in_lists_and_by_indentation() -> None:
    nested = fenced(REPORT).replace("\n", "\n    ").rstrip()
    indented = "".join(f"    {line}\n" for line in TABLE.splitlines())
    item = fenced(REPORT).replace("\n", "\n  ").rstrip()
    text = f"# A\n1. first\n   - second\n\n    {nested}\n\n- {item}\n\ntext\n\n{indented}\n\nend\n"
    found, problems = cut(text)
    assert problems == []
    assert [block.kind for block in found] == ["vegeta.txt", "vegeta.txt", "resource-summary.txt"]
    assert found[2].text.decode() == indented


def test_a_fence_that_its_list_leaves_open_ends_with_the_list() -> None:
    text = "- item\n\n    ```\n" + "".join(f"    {line}\n" for line in REPORT.splitlines()) + f"\n# B\n{fenced(TABLE)}"
    found, problems = cut(text)
    assert [(block.kind, block.headings) for block in found] == [("vegeta.txt", ()), ("resource-summary.txt", ("B",))]
    assert problems == ["is truncated: the code block that begins in line 3 is not closed"]


def test_a_fence_that_is_never_closed_is_told() -> None:
    (block,), problems = cut(f"# A\n\n```\n{REPORT}# B\n")
    assert problems == ["is truncated: the code block that begins in line 3 is not closed"]
    assert block.text.decode() == f"{REPORT}# B\n"


def test_windows_line_ends_and_bytes_that_are_no_text() -> None:
    content = f"# Caf@\n{fenced(REPORT)}".replace("\n", "\r\n").encode().replace(b"@", b"\xe9") + b"\x00\xff"
    (block,), problems = cut(content)
    assert (block.text, problems) == (REPORT.replace("\n", "\r\n").encode(), [])
    assert block.headings == ("Caf\ufffd",)


def test_old_macintosh_line_ends() -> None:
    found, _ = cut(f"# A\n{fenced(TABLE)}".replace("\n", "\r"))
    assert [block.headings for block in found] == [("A",)]


def test_one_block_may_hold_two_results() -> None:
    found, _ = cut(fenced(f"Vegeta Report:\n{REPORT}Usage:\n{TABLE}"))
    assert [(block.kind, block.number) for block in found] == [("vegeta.txt", 1), ("resource-summary.txt", 1)]
    assert found[0].text == found[1].text


def test_a_part_of_a_result_that_is_quoted_as_an_example_is_none() -> None:
    assert cut(fenced(K6.splitlines()[1] + "\n"))[0] == []
    assert cut("".join(f"> {line}\n" for line in fenced(REPORT).splitlines()))[0] == []


def test_the_published_documents(shared: Path) -> None:
    found = {path.name[:3]: cut(path.read_bytes()) for path in sorted((shared / "seeds").iterdir())}
    assert all(problems == [] for _, problems in found.values())
    kinds = {name: [block.kind for block in blocks] for name, (blocks, _) in found.items()}
    assert kinds == {
        "000": [],
        "001": [],
        "002": ["vegeta.txt"] * 10,
        "003": ["vegeta.txt", "resource-summary.txt"] * 8,
        "004": [],
    }
    belfrage, uds = found["002"][0], found["003"][0]
    assert {block.headings[:2] for block in belfrage} == {("Testing the impact of tooling dependencies", "Tests")}
    double = [block.number for block in belfrage if block.headings[2].startswith("300s 500rps & 1000rps baseline")]
    assert double == [1, 2]
    assert len({block.headings for block in uds}) == 8
    assert {block.number for block in uds} == {1}


@pytest.mark.parametrize(
    "unit", ["- ", "> ", "`", "~", "#", "=", " ", "\t", "1. ", "-   ", "```\n", "    \n", "Namespace ", "\r"]
)
def test_hostile_repetitions_take_no_time(unit) -> None:
    cut(unit * (200_000 // len(unit)))


def test_a_document_from_a_file(tmp_path) -> None:
    path, problems = tmp_path / "results.md", Problems()
    path.write_text(f"# A\n{fenced(REPORT)}")
    assert [block.kind for block in markdown.blocks(path, problems)] == ["vegeta.txt"]
    path.write_text("")
    assert markdown.blocks(path, problems) == []
    assert problems.texts() == ["is truncated: it is empty"]
