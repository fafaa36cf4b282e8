"""Variants' names in texts of tables, and what pages show for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone.analysis.scope import quoted, requoted
from loadstone.report.verdict_words import pattern, relabelled

NAMES = st.text("ab“” ;:\\\n", max_size=6)


@given(NAMES, NAMES, st.sampled_from([" and ", "", "; "]))
def test_every_quoted_name_is_found_whatever_marks_it_has(first, second, between):
    text = f"1 request of {quoted(first)}{between}{quoted(second)} timed out"
    found = []
    assert requoted(text, lambda name: found.append(name) or "#") == f"1 request of #{between}# timed out"
    assert found == [first, second]


@pytest.mark.parametrize("name", ["“b”", "b”", "”", "“b", "b"])
def test_pages_show_the_label_of_a_name_with_marks(name):
    text = f"p99 takes 1,000 requests, {quoted(name)} has 7"
    assert relabelled(text, {name: "The other"}) == "p99 takes 1,000 requests, The other has 7"
    assert pattern(text) == pattern(f"p99 takes 1,000 requests, {quoted('a')} has 8")
