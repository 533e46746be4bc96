"""G3, L1: records of consumer groups by Apache Kafka 4.4.0 can be read, and ours have the same bytes.

`tests/data/kafka-4.4.0-consumer-group.json` was made by `make_kafkas_records.py`.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.context import ClientContext
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.topics import Topic
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.messages.records import coordinator_records as r
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.consumer.consumer_driver import ConsumerDriver, given
from tests.support.cases import for_each

DATA = json.loads(
    (Path(__file__).resolve().parents[3] / "data" / "kafka-4.4.0-consumer-group.json").read_text(encoding="utf-8")
)
GROUPS = list(DATA["described"])
A = b"a" * 16


def _bytes(text):
    return None if text is None else base64.b64decode(text)


LOG = [CoordinatorRecord(_bytes(key), _bytes(value)) for key, value in DATA["records"]]
OF_GROUPS = [record for record in LOG if int.from_bytes(record.key[:2], "big") in records.TYPES]


@pytest.fixture
def cluster():
    cluster = GroupTopics()
    racks = frozenset({DATA["rack"]})
    for name, topic in DATA["topics"].items():
        count = topic["partitions"]
        cluster.topics[name] = Topic(bytes.fromhex(topic["id"]), name, count, (racks,) * count)
    return cluster


@pytest.fixture
def driver(cluster):
    driver = ConsumerDriver(cluster, GroupSettings(consumer_assignment_interval_ms=0))
    driver.log = list(LOG)
    driver.restart()
    return driver


def shown(assignment):
    return {entry.topic_name: entry.partitions for entry in assignment.topic_partitions}


@for_each("group_id", GROUPS)
def test_a_group_of_kafka_is_what_kafka_said_it_is(driver, group_id):
    description = driver.describe(group_id)
    assert {
        "state": description.group_state,
        "epoch": description.group_epoch,
        "assignment_epoch": description.assignment_epoch,
        "assignor": description.assignor_name,
        "members": {
            member.member_id: {
                "instance_id": member.instance_id,
                "rack_id": member.rack_id,
                "epoch": member.member_epoch,
                "topics": member.subscribed_topic_names,
                "regex": member.subscribed_topic_regex or None,
                "type": member.member_type,
                "assignment": shown(member.assignment),
                "target": shown(member.target_assignment),
            }
            for member in description.members
        },
    } == DATA["described"][group_id]


@for_each("group_id", GROUPS)
def test_the_metadata_hash_is_kafka_s(driver, cluster, group_id):
    group = driver.coordinator.groups[group_id]
    assert group_hash(group.subscribed_topics(), cluster) == group.metadata_hash


def test_a_group_of_kafka_goes_on(driver):
    """Its members keep their assignments: nothing has changed, so the epoch is not bumped."""
    joined = DATA["described"]["regex"]["members"]["r1"]
    written = len(driver.log)
    response = driver.beat("r1", joined["epoch"], group_id="regex", context=ClientContext("raw", "/127.0.0.1", 1))
    assert (response.error_code, response.member_epoch, response.assignment) == (0, joined["epoch"], None)
    assert len(driver.log) == written
    back = driver.beat("s9", 0, group_id="static", instance_id="i1", subscribed_topic_names=["orders"])
    assert back.error_code != 0, "s3 has the instance id"
    moving = driver.beat("m1", 2, group_id="shared", owned={})
    assert moving.member_epoch == 4, "it gave up everything"
    assert given(driver.beat("m2", 3, group_id="shared"))


def test_our_records_are_kafka_s_bytes():
    """Every record of Kafka is the same after reading and writing it."""
    written = [record for record in OF_GROUPS if record.value is not None]
    assert {int.from_bytes(record.key[:2], "big") for record in written} == set(records.TYPES) - {
        records.PARTITION_METADATA
    }
    for record in written:
        kind = int.from_bytes(record.key[:2], "big")
        group_id, about = records.TYPES.read_key(kind, record.key[2:])
        value = records.TYPES.read_value(kind, record.value)
        again = _again(kind, group_id, about, value)
        assert again.key == record.key
        assert _canonical(kind, again.value) == _canonical(kind, record.value)


def _again(kind, group_id, about, value):
    if kind == records.GROUP_METADATA:
        return records.group_epoch(group_id, value.epoch, value.metadata_hash)
    if kind == records.MEMBER_METADATA:
        return records.member_metadata(group_id, records.with_metadata(ConsumerMember(about), value))
    if kind == records.TARGET_ASSIGNMENT_METADATA:
        return records.target_epoch(group_id, value.assignment_epoch, value.assignment_timestamp)
    if kind == records.TARGET_ASSIGNMENT_MEMBER:
        return records.target_assignment(group_id, about, records.read_target(value))
    if kind == records.CURRENT_ASSIGNMENT:
        return records.current_assignment(group_id, records.with_assignment(ConsumerMember(about), value))
    resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    return records.regular_expression(group_id, about, resolved)


def _canonical(kind, value):
    """The value with sorted lists, which Kafka writes in the order of its hash tables."""
    message = records.TYPES.read_value(kind, value)
    for name in ("assigned_partitions", "partitions_pending_revocation", "topic_partitions"):
        for entry in getattr(message, name, ()):
            order = sorted(range(len(entry.partitions)), key=entry.partitions.__getitem__)
            if getattr(entry, "assignment_epochs", None) is not None:
                entry.assignment_epochs = [entry.assignment_epochs[place] for place in order]
            entry.partitions = sorted(entry.partitions)
        getattr(message, name, []).sort(key=lambda entry: entry.topic_id)
    if isinstance(message, r.ConsumerGroupRegularExpressionValue):
        message.topics.sort()
    return value[:2] + message.encode(0)


def test_tombstones_are_kafka_s():
    gone = {record.key for record in OF_GROUPS if record.value is None}
    ours = {record.key for record in records.member_tombstones("left", "l1")}
    assert ours <= gone


class TestOlderRecords:
    def test_without_assignment_epochs_the_member_s_epoch_counts(self):
        entry = r.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(topic_id=A, partitions=[2, 1])
        value = r.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=7,
            previous_member_epoch=6,
            state=0,
            assigned_partitions=[entry],
            partitions_pending_revocation=[],
        )
        assert records.with_assignment(ConsumerMember("m"), value).assigned == {A: {2: 7, 1: 7}}

    def test_what_was_written_of_topics_is_removed_at_the_next_change(self):
        driver = ConsumerDriver()
        driver.beat("m1")
        key = b"\0\4" + r.ConsumerGroupPartitionMetadataKey(group_id="g").encode(0)
        driver.log.append((key, b"\0\0" + r.ConsumerGroupPartitionMetadataValue(topics=[]).encode(0)))
        driver.restart()
        assert driver.group().has_partition_metadata
        driver.beat("m2")
        assert not driver.group().has_partition_metadata
        assert (key, None) in driver.log


class TestLoading:
    """A compacted log: only the last record of every key, and offsets may precede their group."""

    def test_offsets_before_the_group(self):
        driver = ConsumerDriver()
        driver.commit(5)
        driver.beat("m1")
        driver.log = driver.log[:1] + driver.log[2:]  # without the tombstone of the simple group
        driver.restart()
        assert isinstance(driver.group(), ConsumerGroup)
        assert driver.fetch() is not None

    def test_only_last_records(self):
        driver = ConsumerDriver(GroupTopics(t=6))
        driver.beat("m1")
        driver.beat("m2")
        driver.beat("m1", 2, owned={})
        driver.beat("m2", 3)
        driver.beat("m1", -1)
        live = driver.group()
        last = {}
        for key, value in driver.log:
            last.pop(key, None)
            last[key] = value
        driver.log = [(key, value) for key, value in last.items() if value is not None]
        driver.restart()
        loaded = driver.group()
        for name in ("epoch", "assignment_epoch", "members", "target", "owners", "topic_counts"):
            assert getattr(loaded, name) == getattr(live, name), name

    def test_garbage_is_reported_not_swallowed(self):
        from barnabas.wire.errors import ProtocolError

        driver = ConsumerDriver()
        with pytest.raises(ProtocolError):
            driver.coordinator.replay(b"\0\3\0\5ab", b"\0\0", driver.at)
        with pytest.raises(ProtocolError):
            driver.coordinator.replay(b"\0\3\0\1g", b"\0\0\1", driver.at)
