"""Groups: members with their partitions, committed offsets, and waits for both."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.testing import Cluster


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_at_work(kafka: Cluster, confluent: Any, protocol: str) -> None:
    topic, group = kafka.topic("orders"), kafka.group("g")
    topic.create(3)
    for number in range(3):
        topic.produce(str(number), partition=number)
    consumer = confluent.consumer("orders", group_id="g", group_protocol=protocol, enable_auto_commit=False)
    values = set()
    while len(values) < 3:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.add(message.value())
    (member,) = group.wait_until_assigned(1, partitions=3)
    assert (member.client_id, member.assignment) == ("rdkafka", {"orders": [0, 1, 2]})
    assert group.committed("orders") is None
    consumer.commit(asynchronous=False)
    group.assert_committed("orders", {0: 1, 1: 1, 2: 1})
    assert group.committed("orders", 2) == 1
    state = group.describe()
    assert (state.type.lower(), state.state, set(state.lag.values())) == (protocol, "Stable", {0})
    consumer.close()
    assert group.wait_until("Empty").members == []


def test_a_failure_says_what_the_group_is(kafka: Cluster) -> None:
    with pytest.raises(AssertionError, match="Group g has not 1 member with partitions: there is no such group"):
        kafka.group("g").wait_until_assigned(timeout=0)
    with pytest.raises(AssertionError, match="Group g has not committed orders-0: 5: there is no such group"):
        kafka.group("g").assert_committed("orders", 5, timeout=0)
    with pytest.raises(AssertionError, match="Group g is not Stable: there is no such group"):
        kafka.group("g").wait_until("Stable", timeout=0)


def test_a_state_that_no_group_has(kafka: Cluster) -> None:
    with pytest.raises(ValueError, match="No group is ever 'Stabl'; the states are Assigning"):
        kafka.group("g").wait_until("Stabl")
