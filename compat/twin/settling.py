"""Waits until both brokers know a change of the metadata: Kafka answers a change before its broker has applied it.

"topics": the partitions of the topics of the request answer ListOffsets, if the topic exists. "gone": Metadata shows
the topics no more. "transaction": its markers are written. "metadata": two changes after it are visible, so the first
of them, and all before, are applied (Kafka's broker applies changes in their order, and shows one before it has applied
it wholly).
"""

from __future__ import annotations

import time
from typing import Any

from compat.twin.channel import Channel
from compat.twin.steps import at_path

WAIT_S = 10.0
PAUSE_S = 0.002
TRANSIENT = {3, 5, 6, 9, 14, 15, 16, 100}
"""UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, ..., UNKNOWN_TOPIC_ID."""
BARRIER = "twin-barrier"
_VALUE = ("results", 0, "configs", 0, "value")


def ask(channel: Channel, api: str, version: int, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request; the connection has no other requests."""
    channel.send(api, version, request)
    return channel.read()


def prepare(channel: Channel) -> None:
    """The topic of the barrier, and the internal topics with their coordinators."""
    _create(channel, BARRIER)
    for key_type, key in ((0, "twin"), (1, "twin")):
        for number in range(4):
            request = {"key_type": key_type, "coordinator_keys": [f"{key}{number}"]}
            _until(
                lambda r=request: at_path(ask(channel, "FindCoordinator", 6, r), ("coordinators", 0, "error_code")) == 0
            )
    shared = {"key_type": 2, "coordinator_keys": ["twin:AAAAAAAAAAAAAAAAAAAAAQ:0"]}
    _until(lambda: at_path(ask(channel, "FindCoordinator", 6, shared), ("coordinators", 0, "error_code")) == 0)
    for number in range(8):
        request = {"transactional_id": f"twin-{number}", "transaction_timeout_ms": 60000}
        _until(lambda r=request: ask(channel, "InitProducerId", 5, r).get("error_code") == 0)
        groups = {"groups": [{"group_id": f"twin-{number}", "topics": None}]}
        _until(lambda r=groups: at_path(ask(channel, "OffsetFetch", 9, r), ("groups", 0, "error_code")) == 0)


def _create(channel: Channel, name: str) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    ask(channel, "CreateTopics", 5, {"topics": [topic]})
    topics_known(channel, [name])


def _until(condition: Any) -> bool:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)
    return True


def topics_known(channel: Channel, names: list[str]) -> None:
    """Wait until every partition of the topics that exist has a leader that answers."""
    wanted = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}

    def led() -> bool:
        topics = ask(channel, "Metadata", 9, wanted).get("topics", [])
        existing = {
            topic["name"]: [part["partition_index"] for part in topic["partitions"]]
            for topic in topics
            if topic["error_code"] == 0
        }
        if len(existing) < len(names):
            return False
        request = {
            "replica_id": -1,
            "topics": [
                {"name": name, "partitions": [{"partition_index": index, "timestamp": -1} for index in indexes]}
                for name, indexes in existing.items()
            ],
        }
        offsets = ask(channel, "ListOffsets", 4, request).get("topics", [])
        return all(part["error_code"] == 0 for topic in offsets for part in topic["partitions"])

    if names:
        _until(led)


def topics_gone(channel: Channel, names: list[str]) -> None:
    """Wait until Metadata shows none of the topics."""
    wanted = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
    if names:
        _until(lambda: all(topic["error_code"] for topic in ask(channel, "Metadata", 9, wanted).get("topics", [])))


def transaction_done(channel: Channel, transactional_id: str) -> None:
    """Wait until the markers of a transaction are written: Kafka answers before that, Barnabas after it."""
    request = {"transactional_ids": [transactional_id]}

    def done() -> bool:
        states = ask(channel, "DescribeTransactions", 0, request).get("transaction_states", [])
        return all(not state["transaction_state"].startswith("Prepare") for state in states)

    _until(done)


class Barrier:
    """Waits until all changes that were made before are applied."""

    def __init__(self) -> None:
        self._value = 100_000

    def wait(self, channel: Channel) -> None:
        """Two changes of a config of a topic of its own, one after the other is visible."""
        for _ in range(2):
            self._value += 1
            value = str(self._value)
            config = {"name": "retention.bytes", "config_operation": 0, "value": value}
            resource = {"resource_type": 2, "resource_name": BARRIER}
            ask(channel, "IncrementalAlterConfigs", 1, {"resources": [{**resource, "configs": [config]}]})
            keys = {"resources": [{**resource, "configuration_keys": ["retention.bytes"]}]}
            _until(lambda k=keys, v=value: at_path(ask(channel, "DescribeConfigs", 4, k), _VALUE) == v)
