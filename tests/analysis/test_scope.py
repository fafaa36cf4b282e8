"""Variants' names in texts of tables, and what pages show for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone.analysis.reasons import quoted, renamed

NAMES = st.text("ab“” ;:\\\n", max_size=6)


@given(NAMES, NAMES, st.sampled_from([" and ", "", "; "]))
def test_every_quoted_name_is_found_whatever_marks_it_has(first, second, between):
    text = f"1 request of {quoted(first)}{between}{quoted(second)} timed out"
    found = []
    assert renamed(text, lambda name: found.append(name) or "#") == f"1 request of #{between}# timed out"
    assert found == [first, second]


@pytest.mark.parametrize("name", ["“b”", "b”", "”", "“b", "b"])
def test_pages_show_the_label_of_a_name_with_marks(name):
    text = f"p99 takes 1,000 requests, {quoted(name)} has 7"
    assert renamed(text, {name: "The other"}.__getitem__) == "p99 takes 1,000 requests, The other has 7"
