"""Which topics a subscribed regular expression matches, and which expressions are refused (KIP-848)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.consumer.regex import compiled, matching
from barnabas.coord.groups.consumer.regex_resolution import (
    MATCHES_PER_EXPRESSION,
    MATCHES_PER_STEP,
    Resolution,
)
from barnabas.coord.machine import Moment
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.cases import for_each

NAMES = ["orders", "orders-eu", "orders-us", "my.orders", "__consumer_offsets"]
AT = Moment(0.0, 7)


def resolve(jobs, changed=None, before=None, most=3):
    """The topics of expressions after a resolution in steps of `most` names."""
    known = {regex: ResolvedRegex(frozenset(topics)) for regex, topics in (before or {}).items()}
    resolution = Resolution("g", jobs, changed)
    while not resolution.is_done:
        assert resolution.step(most) <= most
    return {regex: resolved.topics for regex, resolved in {**known, **resolution.apply(known, AT)}.items()}


@for_each(
    ("regex", "topics"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu", "orders-us"}),
        ("^orders-(eu|us)$", {"orders-eu", "orders-us"}),
        (".*", set(NAMES)),
        (r"\w+\.orders", {"my.orders"}),
        ("(?i)ORDERS", {"orders"}),
        ("bills", set()),
    ],
)
def test_an_expression_stands_for_the_topics_whose_whole_name_it_matches(regex, topics):
    assert matching(regex, NAMES) == topics


@for_each("regex", ["a(", "[z-a]", "*", "(?=look)", r"(a)\1", "a{9999}", "(((a{100}){100}){100}){100}", "x" * 2**20])
def test_what_is_no_expression_or_asks_too_much_is_refused(regex):
    with pytest.raises(KafkaError) as refused:
        compiled(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "is not a valid regular expression: " in str(refused.value)


def test_an_invalid_expression_of_an_old_record_stands_for_nothing(caplog):
    assert matching("a(", NAMES) == set()
    assert "a(" in caplog.text


def test_several_expressions_are_resolved_in_small_steps():
    jobs = dict.fromkeys(["orders", "a(", "my.*"], NAMES)
    assert resolve(jobs) == {"orders": {"orders"}, "a(": set(), "my.*": {"my.orders"}}


def test_an_expression_counts_as_names_since_it_may_have_to_be_compiled():
    resolution = Resolution("g", {f"{number}.*": ["orders"] for number in range(1000)}, None)
    steps = 0
    while not resolution.is_done:
        resolution.step(MATCHES_PER_STEP)
        steps += 1
    assert steps >= 1000 * MATCHES_PER_EXPRESSION // MATCHES_PER_STEP


def test_an_expression_that_makes_others_backtrack_for_ever_is_answered():
    assert matching("(a*)*b", ["a" * 249]) == set()


def test_topics_that_come_and_go_are_taken_in_without_looking_at_the_others():
    before = {"orders.*": {"orders", "orders-eu", "orders-us"}}
    there = {"orders-asia", "bills"}
    after = resolve({"orders.*": list(there)}, {"orders-eu", *there}, before)
    assert after == {"orders.*": {"orders", "orders-us", "orders-asia"}}


def test_topics_that_the_member_does_not_see_match_nothing():
    resolution = Resolution("g", {".*": NAMES}, None, lambda name: "eu" not in name)
    while not resolution.is_done:
        resolution.step(10)
    assert resolution.apply({}, AT)[".*"].topics == set(NAMES) - {"orders-eu"}


def test_only_what_has_changed_is_recorded():
    known = {"orders": ResolvedRegex(frozenset({"orders"}), timestamp_ms=1)}
    resolution = Resolution("g", {"orders": ["orders"], "bills": ["orders"]}, {"orders"})
    while not resolution.is_done:
        resolution.step(10)
    assert resolution.apply(known, AT) == {"bills": ResolvedRegex(frozenset(), timestamp_ms=7)}


@given(
    before=st.frozensets(st.sampled_from(NAMES)),
    after=st.frozensets(st.sampled_from(NAMES)),
    regex=st.sampled_from(["orders", "orders.*", ".*", "a(", ".*s"]),
    most=st.integers(1, 9),
)
def test_the_changes_lead_where_resolving_anew_does(before, after, regex, most):
    changed = before ^ after
    known = {regex: matching(regex, before)}
    assert resolve({regex: list(changed & after)}, changed, known, most) == {regex: matching(regex, after)}
