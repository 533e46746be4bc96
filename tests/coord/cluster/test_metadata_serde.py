"""The bytes of metadata records and checkpoints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.checkpoint import (
    RECORDS_PER_BATCH,
    build_checkpoint,
    checkpoint_name,
    load_checkpoint,
    parse_checkpoint_name,
)
from barnabas.coord.cluster.metadata_log.metadata_batches import (
    build_metadata_batch,
    leader_change_batch,
    replay_batches,
)
from barnabas.coord.cluster.metadata_log.metadata_serde import (
    RECORD_TYPES,
    decode_record,
    encode_record,
    record_version,
)
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.batches.records import control_record_type, iter_batches, iter_records
from barnabas.wire.messages.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from barnabas.wire.messages.records.raft_records import LeaderChangeMessage
from tests.support.cases import for_each


def test_a_record_begins_with_frame_version_type_and_version() -> None:
    """MetadataRecordSerde: three unsigned varints, then the message."""
    record = FeatureLevelRecord(name="metadata.version", feature_level=33)
    assert encode_record(record) == b"\x01\x0c\x00" + b"\x11metadata.version" + b"\x00\x21" + b"\x00"


def test_all_27_record_types_of_kafka_round_trip() -> None:
    assert len(RECORD_TYPES) == 27
    for declared in RECORD_TYPES.values():
        assert decode_record(encode_record(declared())) == declared()


@for_each(
    ("value", "reason"),
    [
        (b"", "truncated"),
        (b"\x01", "truncated"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x63\x00", "Unknown metadata record type 99 version 0"),
        (b"\x01\x02\x09", "Unknown metadata record type 2 version 9"),
        (b"\x01\x02\x00\x05a", "Invalid TopicRecord"),
    ],
)
def test_unknown_or_invalid_records_are_refused(value: bytes, reason: str) -> None:
    with pytest.raises(UnknownMetadataError, match=reason):
        decode_record(value)


@for_each(
    ("metadata_version", "versions"),
    [
        (7, (1, 1, 0, 0)),
        (8, (2, 1, 0, 0)),
        (16, (2, 1, 0, 0)),
        (17, (3, 2, 1, 1)),
        (22, (3, 2, 1, 1)),
        (23, (3, 2, 2, 2)),
        (29, (3, 2, 2, 2)),
        (30, (4, 3, 2, 2)),
        (33, (4, 3, 2, 2)),
    ],
)
def test_records_are_written_in_the_version_for_the_metadata_version(
    metadata_version: int, versions: tuple[int, ...]
) -> None:
    """The table of Kafka 4.4's `MetadataVersion`; fields that a version does not have are left out."""
    kinds = (RegisterBrokerRecord, BrokerRegistrationChangeRecord, PartitionRecord, PartitionChangeRecord)
    assert tuple(record_version(kind, metadata_version) for kind in kinds) == versions
    partition = PartitionRecord(partition_id=3, topic_id=b"t" * 16, replicas=[1], isr=[1], directories=[b"d" * 16])
    partition.eligible_leader_replicas = [1]
    read = decode_record(encode_record(partition, metadata_version))
    assert isinstance(read, PartitionRecord)
    assert (read.partition_id, read.replicas) == (3, [1])
    assert read.directories == ([b"d" * 16] if metadata_version >= 17 else [])
    assert read.eligible_leader_replicas == ([1] if metadata_version >= 23 else None)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_decoded_or_refused(value: bytes) -> None:
    try:
        record = decode_record(value)
    except UnknownMetadataError:
        return
    assert type(record) in RECORD_TYPES.values()


def test_an_epoch_begins_with_a_leader_change() -> None:
    (batch,) = iter_batches(leader_change_batch(leader_id=1, epoch=3, now_ms=5, base_offset=7))
    (record,) = iter_records(batch)
    assert (batch.is_control, batch.partition_leader_epoch, batch.base_offset) == (True, 3, 7)
    assert control_record_type(record) == 2
    change = LeaderChangeMessage.decode(record.value or b"", 0)
    assert (change.leader_id, [voter.voter_id for voter in change.voters]) == (1, [1])


def test_replay_moves_offset_and_epoch_and_skips_control_records() -> None:
    image = ClusterImage()
    log = leader_change_batch(leader_id=1, epoch=3, now_ms=0) + build_metadata_batch(
        [TopicRecord(name="a", topic_id=b"\x01" * 16), TopicRecord(name="b", topic_id=b"\x02" * 16)],
        epoch=3,
        now_ms=0,
        base_offset=1,
    )
    replay_batches(log, image, ClusterDelta())
    assert (image.offset, image.epoch, list(image.topics)) == (2, 3, ["a", "b"])


def test_a_flipped_bit_is_detected() -> None:
    log = bytearray(build_metadata_batch([TopicRecord(name="a", topic_id=b"\x01" * 16)], epoch=1, now_ms=0))
    log[-3] ^= 1
    with pytest.raises(UnknownMetadataError, match="invalid CRC"):
        replay_batches(bytes(log), ClusterImage(), ClusterDelta())


def test_checkpoints_have_kafkas_names() -> None:
    assert checkpoint_name(12, 3) == "00000000000000000012-0000000003.checkpoint"
    assert parse_checkpoint_name("00000000000000000012-0000000003.checkpoint") == (12, 3)
    for other in ("00000000000000000012.log", "bootstrap.checkpoint", "1-2.checkpoint", checkpoint_name(1, 1) + ".tmp"):
        assert parse_checkpoint_name(other) is None


def topics(count: int) -> list[TopicRecord]:
    return [TopicRecord(name=f"t{index}", topic_id=index.to_bytes(16, "big")) for index in range(1, count + 1)]


def test_a_checkpoint_runs_from_header_to_footer_in_batches() -> None:
    parts = list(
        build_checkpoint(topics(RECORDS_PER_BATCH + 1), quorum=Quorum(), epoch=2, last_timestamp_ms=9, now_ms=10)
    )
    batches = [batch for part in parts for batch in iter_batches(part)]
    assert [(batch.base_offset, batch.is_control) for batch in batches] == [
        (0, True),
        (1, False),
        (RECORDS_PER_BATCH + 1, False),
        (RECORDS_PER_BATCH + 2, True),
    ]
    image = load_checkpoint(b"".join(parts), 50, 2)
    assert (image.offset, image.epoch, len(image.topics)) == (49, 2, RECORDS_PER_BATCH + 1)


def test_a_checkpoint_that_is_cut_is_refused() -> None:
    *parts, _ = build_checkpoint(topics(3), quorum=Quorum(), epoch=2, last_timestamp_ms=9, now_ms=10)
    with pytest.raises(UnknownMetadataError, match="is incomplete"):
        load_checkpoint(b"".join(parts), 50, 2)
