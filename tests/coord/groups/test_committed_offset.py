"""G7: committed offsets are kept as the bytes of their records, and a load remembers groups and topics."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coord.groups import records
from barnabas.coord.groups.committed_offset import CommittedOffset, checked, decoded, is_plain
from barnabas.coord.groups.config import GroupConfig
from barnabas.coord.groups.coordinator import GroupCoordinator
from barnabas.coord.machine import Moment
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.messages.records.coordinator_records import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tests.support.volume import how_many

EXAMPLES = how_many("BARNABAS_EXAMPLES", 100)
AT = Moment(0.0, 1_700_000_000_000)
BYTES_OF_AN_OFFSET = 150
"""What one of a hundred offsets of a group in a topic may take; an object of its fields took 290."""

numbers = st.integers(-(2**63), 2**63 - 1)
values = st.builds(
    OffsetCommitValue,
    offset=numbers,
    leader_epoch=st.integers(-(2**31), 2**31 - 1),
    metadata=st.text(st.characters(codec="utf-8"), max_size=8) | st.text("x", min_size=120, max_size=140),
    commit_timestamp=numbers,
    topic_id=st.sampled_from((bytes(16), b"a" * 16)) | st.binary(min_size=16, max_size=16),
)


def fields(value: OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


@settings(max_examples=EXAMPLES)
@given(values, st.integers(0, 4))
def test_the_bytes_of_every_version_decode_to_the_fields(value, version):
    written = records.prefixed(version, value, version)
    assert decoded(checked(written)) == fields(records.read_offset(written))


@settings(max_examples=EXAMPLES)
@given(values, st.data())
def test_what_is_taken_for_plain_is_what_the_message_has(value, data):
    """Damaged and cut bytes are refused as before; values accepted without decoding have the same fields."""
    written = bytearray(records.prefixed(4, value, 4))
    for at in data.draw(st.lists(st.integers(0, len(written) - 1), max_size=2)):
        written[at] = data.draw(st.integers(0, 255))
    damaged = bytes(written[: data.draw(st.integers(len(written) - 2, len(written)))])
    try:
        expected = fields(records.read_offset(damaged))
    except (ProtocolError, KafkaError) as refused:  # KafkaError: a version that is not known
        assert not is_plain(damaged)
        with pytest.raises(type(refused)):
            checked(damaged)
    else:
        assert decoded(checked(damaged)) == expected


def offset_record(group: str, topic: str, partition: int, offset: int | None):
    if offset is None:
        return records.offset_tombstone(group, topic, partition)
    value = OffsetCommitValue(offset=offset, metadata="é" * (offset % 2), commit_timestamp=offset, topic_id=b"i" * 16)
    return records.offset_commit(OffsetCommitKey(group=group, topic=topic, partition=partition), value)


names = st.sampled_from(("g", "t"))
history = st.lists(
    st.builds(offset_record, names, names, st.integers(0, 1), st.none() | st.integers(0, 9))
    | st.builds(records.group_tombstone, names)
    | st.builds(lambda group: records.group_metadata(group, GroupMetadataValue(protocol_type="consumer")), names),
    max_size=30,
)


def load(coordinator: GroupCoordinator, key: bytes, value: bytes | None) -> bool:
    """As loading does (`broker.coordinators.replay`); whether the group and the topic were known."""
    if value is not None and coordinator.replay_known(key, value):
        return True
    coordinator.replay(key, value, AT)
    return False


@settings(max_examples=EXAMPLES)
@given(history)
def test_a_load_that_remembers_groups_and_topics_gives_what_decoding_every_key_gives(log):
    loading = GroupCoordinator(GroupConfig(), str)
    decoding = GroupCoordinator(GroupConfig(), str)
    for key, value in log:
        load(loading, key, value)
        decoding.replay(key, value, AT)
    assert loading.offsets.store == decoding.offsets.store
    assert loading.groups.keys() == decoding.groups.keys()


def test_an_offset_that_follows_the_removal_of_all_is_kept():
    coordinator = GroupCoordinator(GroupConfig(), str)
    for offset in (2, None, 4):
        load(coordinator, *offset_record("g", "t", 0, offset))
    assert coordinator.offsets.store.get("g", "t", 0).offset == 4
    load(coordinator, *records.group_tombstone("g"))
    load(coordinator, *offset_record("g", "t", 0, 6))
    assert "g" in coordinator.groups


def test_an_offset_takes_little_memory():
    log = [offset_record(f"g{group}", "topic", partition, 2) for group in range(20) for partition in range(100)]
    coordinator = GroupCoordinator(GroupConfig(), str)
    coordinator.replay(*log[0], AT)
    tracemalloc.start()
    for key, value in log:
        load(coordinator, key, bytes(bytearray(value)))
    coordinator.loaded(AT)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(coordinator.groups) == 20
    assert taken / len(log) < BYTES_OF_AN_OFFSET


def test_only_the_first_offset_of_a_group_and_topic_is_decoded():
    coordinator = GroupCoordinator(GroupConfig(), str)
    were_known = [load(coordinator, *offset_record("g", "t", partition, 2)) for partition in range(4)]
    assert were_known == [False, True, True, True]
    coordinator.loaded(AT)
    assert not load(coordinator, *offset_record("g", "t", 0, 4)), "nothing is remembered after the load"
    assert coordinator.offsets.store.get("g", "t", 0) == CommittedOffset(4, -1, "", 4, -1, b"i" * 16)
