"""Numbers as people read them."""

import json
import random
import shutil
import subprocess
from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path

import pytest
from loadstone.config.variants import PALETTE, contrast, on_dark, on_light
from loadstone.report import numbers
from loadstone.report.output import unbroken
from loadstone.text import counted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (0.00012345, "0.000123"),
        (0.46249, "0.462"),
        (1, "1.00"),
        (9.999, "10.0"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1234.5, "1,234"),
        (45678.9, "45,679"),
        (-2.5, "−2.50"),
    ],
)
def test_three_significant_digits_and_whole_numbers_in_full(value, text):
    assert numbers.significant(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (None, "–"),
        (0, "0 %"),
        (1, "100 %"),
        (0.5, "50 %"),
        (0.0667, "6.67 %"),
        (0.00012, "0.012 %"),
        (1e-9, "< 0.0001 %"),
        (0.99996, "99.996 %"),
        (0.9999999, "99.9999 %"),
    ],
)
def test_a_share_is_never_rounded_to_none_or_all(fraction, text):
    assert numbers.share(fraction) == text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("adds 0.15 ms [0.14, 0.16] at 1,000 requests/s", "adds 0.15~ms [0.14,~0.16] at 1,000~requests/s"),
        ("<b>5 %</b> of 3 s, [−31, +244]", "<b>5~%</b> of 3~s, [−31,~+244]"),
        ('at <span data-chosen="rate"></span> users', 'at <span data-chosen="rate"></span>~users'),
        ("5 sums, 3 runs, 1, 2", "5 sums, 3 runs, 1, 2"),
        ('<p title="5 ms">', '<p title="5 ms">'),
        ("<script>[1, 2] // 5 ms</script><code>5 ms</code>", "<script>[1, 2] // 5 ms</script><code>5 ms</code>"),
    ],
)
def test_lines_end_neither_between_a_number_and_its_unit_nor_within_an_interval(html, expected):
    assert unbroken(html) == expected.replace("~", "\u00a0")


def test_one_unit_per_page_by_its_medians():
    assert numbers.page_unit([200_000, 460_000, None]) is numbers.MILLISECONDS
    assert numbers.page_unit([20_000, 46_000, 150_000]) is numbers.MICROSECONDS
    assert numbers.page_unit([]) is numbers.MILLISECONDS
    assert numbers.MICROSECONDS.of(12_345_678) == 12345.7
    assert numbers.MILLISECONDS.of(None) is None


def near_halves() -> list[float]:
    """Latencies in ns whose fourth digit and those after it are nearly half a step of the third, and others."""
    drawn = random.Random(20)
    found = [10 ** drawn.uniform(2, 12) for _ in range(2000)]
    for _ in range(4000):
        half = (drawn.randrange(100, 1000) + 0.5) * 10.0 ** drawn.randint(1, 6)
        found.append(half * (1 + drawn.choice((-1, 1)) * 10 ** drawn.uniform(-9, -4)))
    return [*found, 123_456_700_000.0, 1_234_500_499_999.0, 12_345_678_499_000.0, 1_235_000.0, 1_225_000.0]


def exact(value: float) -> str:
    """A number as texts have it: three digits, but never fewer than stand before the point; halves become even."""
    whole = Decimal(value).adjusted() + 1
    found = Context(prec=max(3, whole), rounding=ROUND_HALF_EVEN).create_decimal(Decimal(value))
    return f"{found:,.{max(0, 2 - found.adjusted())}f}"


@pytest.mark.parametrize("unit", [numbers.MILLISECONDS, numbers.MICROSECONDS])
@pytest.mark.parametrize("digits", [None, 5, 4])
def test_what_is_shown_of_a_pages_data_is_the_exact_figure_to_three_digits(unit, digits):
    """Data has fewer digits than the figure, and the text fewer than the data: rounded twice, some end one step off."""
    wrong = {}
    for latency_ns in near_halves():
        held = unit.of(latency_ns) if digits is None else numbers.rounded(unit.of(latency_ns), digits)
        expected = exact(latency_ns / unit.length_ns)
        if numbers.significant(held) != expected:
            wrong[latency_ns] = numbers.significant(held), expected
    assert wrong == {}


def in_browser(tmp_path: Path, expression: str) -> list[str]:
    """The value of an expression after dom.js."""
    source = (Path(numbers.__file__).parent / "assets/dom.js").read_text()
    (path := tmp_path / "numbers.js").write_text(
        f"globalThis.window = globalThis;{source};console.log(JSON.stringify({expression}))"
    )
    found: list[str] = json.loads(subprocess.run(["node", path], capture_output=True, check=True).stdout)
    return found


needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


@needs_node
def test_browsers_show_the_same(tmp_path):
    held = [numbers.rounded(numbers.MILLISECONDS.of(each), digits) for each in near_halves() for digits in (4, 6)]
    shown = in_browser(tmp_path, f"{held}.map(window.loadstone.significant)")
    assert shown == [exact(each / 1e6) for each in near_halves() for _ in (4, 6)]


@needs_node
@pytest.mark.parametrize("step_ns", [100_000, 1_000_000])
def test_browsers_round_to_the_steps_of_a_coarse_clock_as_tables_do(tmp_path, step_ns):
    latencies_ns = [step_ns * steps / 4 for steps in range(100)]
    [step, decimals] = numbers.coarse_step([{"resolution_ns": step_ns, "evidence": "raw"}], numbers.MILLISECONDS)
    held = [numbers.MILLISECONDS.of(each) for each in latencies_ns]
    shown = in_browser(tmp_path, f"{held}.map((each) => loadstone.inSteps(each, {step}).toFixed({decimals}))")
    assert shown == [numbers.in_steps(each, numbers.MILLISECONDS, step_ns) for each in latencies_ns]


def test_times_lists_and_rates():
    assert [numbers.duration(seconds) for seconds in (None, 1.5, 90, 600, 5400)] == [
        "–",
        "1.5 s",
        "90 s",
        "10 min",
        "1.5 h",
    ]
    assert numbers.listed([7, 2, 1, 3, 10]) == "1–3, 7, 10"
    assert [numbers.rate_name(rate) for rate in (100.0, 0.5, 1e6, 0.0)] == ["100", "0.5", "1000000", "0"]
    assert numbers.rate_text(12500.0) == "12,500"
    assert counted(1, "run") == "1 run" and counted(1350, "run") == "1,350 runs"


@pytest.mark.parametrize("colour", PALETTE)
def test_every_colour_stands_out_on_dark_paper(colour):
    assert on_light(colour) == colour
    assert contrast(on_dark(colour), "#14171a") >= 4


def test_what_is_no_colour_becomes_a_grey():
    assert on_light("red;} body{display:none") == "#767676"
    assert on_dark("javascript:x").startswith("#")


def test_a_moment_is_told_as_it_was_written_with_its_offset():
    assert numbers.moment("2026-11-21T09:00:00-04:00") == "21 November 2026, 09:00 UTC-04:00"
    assert numbers.minute("2026-11-21T09:00:31-04:00") == "2026-11-21 09:00 UTC-04:00"
    assert numbers.moment("2026-01-02T03:04+00:00") == "2 January 2026, 03:04 UTC"
    for text in ("the other day", "2026-01-02T03:04:00"):
        assert numbers.moment(text) == numbers.minute(text) == text
