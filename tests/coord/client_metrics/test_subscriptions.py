"""What clients are asked to push: matching, the union of subscriptions, ids as Kafka's. KIP-714."""

from __future__ import annotations

from typing import TypeVar

import pytest

from barnabas.coord.client_metrics.matching import is_match, parse_match
from barnabas.coord.client_metrics.subscriptions import (
    MATCHED_IN_A_STEP,
    Granted,
    Subscriptions,
    check_values,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.cases import for_each
from tests.support.steps import counted

R = TypeVar("R")
ID = bytes(range(16))
CLIENT = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "orders-7",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.4.0",
    "client_source_address": "10.1.2.3",
    "client_source_port": "50123",
}
# (metrics, interval, client instance id) of a subscription, and the id, metrics and interval that Kafka 4.4.0's
# ClientMetricsManager answers.
OF_KAFKA = [
    (("*",), 100, "0123456789abcdeffedcba9876543210", 899611809, ("*",), 100),
    (("org.apache.kafka.producer.",), 60000, "02468acf13579bdefedcba987654320f", 1517431910, None, 60000),
    (
        ("org.apache.kafka.producer.", "org.apache.kafka.consumer.", "org.apache.kafka.client."),
        300000,
        "0369d0369d0369cdfedcba987654320e",
        -1088282402,
        None,
        300000,
    ),
    (
        (*"abcdefghijklmn", "metric.é😀"),
        3600000,
        "048d159e26af37bcfedcba987654320d",
        -813097869,
        (*"abcdefgh", "metric.é😀", *"ijklmn"),
        300000,
    ),
    (
        tuple(f"x.{number}" for number in range(1, 14)),
        1000,
        "05b05b05b05b05abfedcba987654320c",
        1961771483,
        tuple(f"x.{number}" for number in (7, 12, 6, 11, 9, 10, 8, 13, 1, 3, 2, 5, 4)),
        1000,
    ),
    ((), 250, "06d3a06d3a06d39afedcba987654320b", 635788596, (), 250),
]


def granted(subscriptions: Subscriptions, instance_id: bytes = ID) -> Granted:
    return counted(subscriptions.granted(instance_id, CLIENT))[0]


@for_each(("metrics", "interval", "instance_id", "expected", "asked", "effective"), OF_KAFKA)
def test_ids_and_order_are_those_of_kafka(
    metrics: tuple[str, ...],
    interval: int,
    instance_id: str,
    expected: int,
    asked: tuple[str, ...] | None,
    effective: int,
) -> None:
    subscriptions = Subscriptions()
    subscriptions.update("s", {"metrics": ",".join(metrics), "interval.ms": str(interval)})
    expected_grant = Granted(expected, metrics if asked is None else asked, effective)
    assert granted(subscriptions, bytes.fromhex(instance_id)) == expected_grant


@for_each(
    ("match", "matches"),
    [
        ((), True),
        (("client_id=orders-7",), True),
        (("client_id=orders-.*",), True),
        (("client_id=orders",), False),  # the whole value has to match
        (("client_id=ORDERS-7",), False),
        (("client_software_name=apache-kafka-java", "client_software_version=4\\..*"), True),
        (("client_software_name=apache-kafka-java", "client_software_version=3\\..*"), False),
        (("client_source_address=10\\.1\\..*", "client_source_port=5[0-9]+"), True),
        (("client_source_port=9092",), False),
        (("client_instance_id=AAECAwQFBgcICQoLDA0ODw",), True),
        ((" client_id = orders-7 ",), True),
        (("client_id=other", "client_id=orders-7"), True),  # the last one counts
        (("client_id=orders-7=",), True),  # as Java splits
    ],
)
def test_a_client_matches_when_all_its_attributes_do(match: tuple[str, ...], matches: bool) -> None:
    assert is_match(parse_match(match), CLIENT) is matches


def test_a_client_without_an_id_does_not_match_a_pattern_of_ids() -> None:
    assert not is_match(parse_match(["client_id=.*"]), {**CLIENT, "client_id": None})


@for_each(
    "item",
    [
        *("client_id", "client_id=", "=orders", "client_id=a=b", "client=a", "", "=", "client_id=(", "Client_Id=a"),
        "client_id=(?=a)a",  # Java's syntax, not RE2's
        "client_id=(a)\\1",
    ],
)
def test_other_patterns_are_refused(item: str) -> None:
    with pytest.raises(KafkaError) as refused:
        parse_match([item])
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    assert refused.value.message == f"Illegal client matching pattern: {item}"


@for_each(("interval_ms", "is_valid"), [(99, False), (100, True), (3_600_000, True), (3_600_001, False)])
def test_intervals_have_kafkas_limits(interval_ms: int, is_valid: bool) -> None:
    if is_valid:
        check_values(interval_ms, None)
        return
    with pytest.raises(KafkaError) as refused:
        check_values(interval_ms, None)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_a_client_gets_the_union_of_what_matches_it_and_the_shortest_interval() -> None:
    subscriptions = Subscriptions()
    subscriptions.update("one", {"metrics": "a.,b.", "interval.ms": "5000", "match": "client_id=orders-.*"})
    subscriptions.update("two", {"metrics": "b.,c.", "interval.ms": "2000"})
    subscriptions.update("other", {"metrics": "d.", "interval.ms": "100", "match": "client_id=invoices"})
    grant = granted(subscriptions)
    assert (set(grant.metrics), len(grant.metrics), grant.interval_ms) == ({"a.", "b.", "c."}, 3, 2000)
    subscriptions.update("all", {"metrics": "*"})
    assert granted(subscriptions).metrics == ("*",)


def test_a_change_gives_a_new_version_and_removing_nothing_does_not() -> None:
    subscriptions = Subscriptions()
    subscriptions.update("s", {"metrics": "*"})
    first = subscriptions.version
    subscriptions.update("t", {})
    assert subscriptions.version == first
    subscriptions.update("s", {})
    assert subscriptions.version > first
    assert granted(subscriptions).metrics == ()


def test_many_subscriptions_are_compared_in_steps() -> None:
    subscriptions = Subscriptions()
    for number in range(3 * MATCHED_IN_A_STEP):
        subscriptions.update(f"s{number}", {"metrics": f"m{number}."})
    grant, steps = counted(subscriptions.granted(ID, CLIENT))
    assert (len(grant.metrics), steps) == (3 * MATCHED_IN_A_STEP, 3)
