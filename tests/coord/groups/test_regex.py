"""Which topics a subscribed regular expression stands for, and which expressions are refused (KIP-848)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.groups.regex import compiled, resolve_changes
from barnabas.coord.groups.regex import resolve as resolve_all
from barnabas.wire.errors import ErrorCode, KafkaError

NAMES = ["orders", "orders-eu", "orders-us", "my.orders", "__consumer_offsets"]


def resolve(regex, names):
    return resolve_all([regex], names)[regex]


@pytest.mark.parametrize(
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
    assert resolve(regex, NAMES) == topics


@pytest.mark.parametrize(
    "regex", ["a(", "[z-a]", "*", "(?=look)", r"(a)\1", "a{9999}", "(((a{100}){100}){100}){100}", "x" * 2**20]
)
def test_what_is_no_expression_or_asks_too_much_is_refused(regex):
    with pytest.raises(KafkaError) as refused:
        compiled(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "is not a valid regular expression: " in str(refused.value)


def test_an_invalid_expression_of_an_old_record_stands_for_nothing(caplog):
    assert resolve("a(", NAMES) == frozenset()
    assert "a(" in caplog.text


def test_several_expressions_are_resolved_at_once():
    assert resolve_all({"orders", "a(", "my.*"}, NAMES) == {"orders": {"orders"}, "a(": set(), "my.*": {"my.orders"}}


def test_an_expression_that_makes_others_backtrack_for_ever_is_answered():
    assert resolve("(a*)*b", ["a" * 249]) == frozenset()


def test_topics_that_come_and_go_are_taken_in_without_looking_at_the_others():
    before = resolve("orders.*", NAMES)
    there = {"orders", "orders-us", "orders-asia", "bills"}
    after = resolve_changes("orders.*", before, ["orders-eu", "orders-asia", "bills"], there.__contains__)
    assert after == {"orders", "orders-us", "orders-asia"}
    assert resolve_changes("orders.*", after, ["orders", "bills"], there.__contains__) is after


@given(
    before=st.frozensets(st.sampled_from(NAMES)),
    after=st.frozensets(st.sampled_from(NAMES)),
    regex=st.sampled_from(["orders", "orders.*", ".*", "a(", ".*s"]),
)
def test_the_changes_lead_where_resolving_anew_does(before, after, regex):
    assert resolve_changes(regex, resolve(regex, before), before ^ after, after.__contains__) == resolve(regex, after)
