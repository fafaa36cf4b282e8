"""Self time and critical path of trees small enough to compute by hand."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from loadstone.readers.jaeger import Span
from loadstone.tables.traces import measure


def span(span_id: str, start: int, end: int, parent: str = "", *, follows: bool = False) -> Span:
    return Span(span_id, parent, follows, "service", "operation", 1000 + start, end - start, False)


def of(*spans: Span) -> dict[str, tuple[int | None, int, int]]:
    """Depth, self and critical time by span ID."""
    times = [(found.depth, found.self_us, found.critical_us) for found in measure(spans)]
    return dict(zip((each.span_id for each in spans), times, strict=True))


def test_three_calls_in_a_row() -> None:
    found = of(span("root", 0, 170), span("a", 5, 75, "root"), span("b", 80, 95, "root"), span("c", 100, 150, "root"))
    assert found == {"root": (0, 35, 35), "a": (1, 70, 70), "b": (1, 15, 15), "c": (1, 50, 50)}


def test_overlapping_children_count_once_in_the_parent_s_self_time() -> None:
    # 0----------100   the parent waits for both; only what ended last before each moment is critical.
    #   10--60
    #      40----90
    found = of(span("root", 0, 100), span("a", 10, 60, "root"), span("b", 40, 90, "root"))
    assert found["root"] == (0, 20, 50)  # critical: 90 to 100 and, b having begun when a still ran, 0 to 40
    assert found["b"] == (1, 50, 50)
    assert found["a"] == (1, 50, 0)


def test_a_child_within_another_s_time_covers_nothing_more() -> None:
    assert of(span("root", 0, 100), span("a", 10, 90, "root"), span("b", 20, 30, "root"))["root"][1] == 20


def test_grandchildren_take_from_their_parent_alone() -> None:
    found = of(span("root", 0, 100), span("a", 10, 90, "root"), span("b", 20, 70, "a"))
    assert found == {"root": (0, 20, 20), "a": (1, 30, 30), "b": (2, 50, 50)}


def test_clocks_that_differ_cut_children_to_their_parent_s_time() -> None:
    found = of(
        span("root", 0, 100),
        span("early", -20, 30, "root"),
        span("late", 80, 140, "root"),
        span("under late", 90, 135, "late"),
        span("never", 200, 300, "root"),
        span("under never", 210, 220, "never"),
    )
    assert found["root"] == (0, 50, 50)
    assert found["early"] == (1, 50, 30)
    assert found["late"] == (1, 15, 10)  # critical from 80 to 90
    assert found["under late"] == (2, 45, 10)
    assert found["never"][2] == found["under never"][2] == 0


def test_spans_outside_their_parent_are_told() -> None:
    spans = [span("root", 0, 10), span("in", 0, 10, "root"), span("early", -1, 5, "root"), span("late", 5, 11, "root")]
    assert [found.outside for found in measure(spans)] == [False, False, True, True]


def test_what_follows_is_not_waited_for() -> None:
    found = of(span("root", 0, 100), span("sent", 20, 90, "root", follows=True), span("below", 30, 80, "sent"))
    assert found == {"root": (0, 100, 100), "sent": (1, 20, 0), "below": (2, 50, 0)}


def test_a_missing_parent_detaches_a_span_and_all_below() -> None:
    found = of(span("root", 0, 100), span("lost", 10, 90, "gone"), span("below", 20, 30, "lost"))
    assert found == {"root": (0, 100, 100), "lost": (None, 70, 0), "below": (None, 10, 0)}


def test_without_a_parentless_span_the_first_to_start_is_the_root() -> None:
    found = of(span("b", 5, 100, "the client"), span("a", 0, 50, "the client"), span("c", 1, 2, "a"))
    assert [found[name][0] for name in "abc"] == [0, None, 1]


def test_of_several_parentless_spans_the_longest_of_the_first_is_the_root() -> None:
    found = of(span("short", 0, 10), span("long", 0, 20), span("later", 5, 500))
    assert [found[name][0] for name in ("short", "long", "later")] == [None, 0, None]


def test_cycles_are_detached() -> None:
    found = of(span("root", 0, 100), span("a", 10, 20, "b"), span("b", 10, 20, "a"), span("self", 30, 40, "self"))
    assert found["root"] == (0, 100, 100)
    assert {found[name][0] for name in ("a", "b", "self")} == {None}


def test_nothing_but_a_cycle_has_no_root() -> None:
    assert {found.depth for found in measure([span("a", 0, 1, "b"), span("b", 0, 1, "a")])} == {None}
    assert measure([]) == []


def test_of_spans_with_one_id_the_first_is_the_parent() -> None:
    spans = [span("root", 0, 100), span("x", 10, 40, "root"), span("x", 50, 60, "root"), span("below", 20, 30, "x")]
    assert [found.self_us for found in measure(spans)] == [60, 20, 10, 10]


def test_a_chain_deeper_than_python_s_stack() -> None:
    depth = 5000
    spans = [span(str(n), n, 2 * depth - n, str(n - 1) if n else "") for n in range(depth)]
    found = measure(spans)
    assert [times.depth for times in found] == list(range(depth))
    assert sum(times.critical_us for times in found) == 2 * depth


def _trees() -> st.SearchStrategy[list[Span]]:
    node = st.tuples(st.integers(0, 100), st.integers(0, 60), st.integers(-1, 12), st.booleans())
    return st.lists(node, min_size=1, max_size=12).map(
        lambda drawn: [
            span(str(n), start, start + length, str(parent) if n and parent >= 0 else "", follows=follows and n > 0)
            for n, (start, length, parent, follows) in enumerate(drawn)
        ]
    )


@given(_trees())
def test_any_tree_is_accounted_for(spans) -> None:
    found = measure(spans)
    roots = [index for index, times in enumerate(found) if times.depth == 0]
    assert len(roots) <= 1
    for each, times in zip(spans, found, strict=True):
        assert 0 <= times.critical_us <= each.duration_us
        assert 0 <= times.self_us <= each.duration_us
        children = [other for other in spans if other.parent_id == each.span_id and not other.follows and other != each]
        moments = range(each.started_us, each.started_us + each.duration_us)
        idle = [m for m in moments if not any(c.started_us <= m < c.started_us + c.duration_us for c in children)]
        assert times.self_us == len(idle)
    # Jaeger's path covers the root from its end to its start without a gap.
    assert sum(times.critical_us for times in found) == sum(spans[root].duration_us for root in roots)


def test_the_order_of_spans_does_not_matter() -> None:
    spans = [span("root", 0, 100), span("a", 10, 60, "root"), span("b", 40, 90, "root"), span("c", 50, 80, "b")]
    results = [of(*order) for order in itertools.permutations(spans)]
    assert all(result == results[0] for result in results)
