"""Codecs: versions, defaults, tagged fields, records without copies, and release of the frame."""

from __future__ import annotations

import gc
import weakref

import pytest
from construct import Construct, ConstructError

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.groups.classic_groups import HeartbeatRequest
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.records.metadata_records import BrokerRegistrationChangeRecord, TopicRecord
from barnabas.wire.schema import Message
from barnabas.wire.types import ZERO_UUID
from barnabas.wire.varint import encode_unsigned_varint
from tests.support.cases import for_each
from tests.support.requests.recorded import Vector, vectors


def build_both(message: Message, version: int) -> bytes:
    """The bytes that both codecs build."""
    compiled = message.encode(version)
    assert type(message).at(version).build(message) == compiled
    return compiled


def parse_both(message_class: type[Message], data: bytes, version: int) -> Message:
    compiled = message_class.decode(data, version)
    assert message_class.at(version).parse(data) == compiled
    return compiled


def rejected_by_both(message: Message, version: int) -> KafkaError:
    with pytest.raises(KafkaError) as interpreted:
        type(message).at(version).build(message)
    with pytest.raises(KafkaError) as compiled:
        message.encode(version)
    assert compiled.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert str(compiled.value) == str(interpreted.value)
    return compiled.value


class FileSlice:
    """A slice whose size a codec uses, but not its bytes."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        return b"s" * self.size


def test_version_outside_the_range_is_unsupported() -> None:
    for version in (-1, 2, 14, 99):
        with pytest.raises(KafkaError) as caught:
            ProduceRequest.codec(version)
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(KafkaError):
            ProduceRequest.at(version)
    assert ProduceRequest.codec(9) is ProduceRequest.codec(9)


def test_at_returns_a_construct() -> None:
    plain = MetadataRequest.at(12)
    assert isinstance(plain, Construct)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert plain.parse(plain.build(request)) == request
    with pytest.raises(ConstructError):
        plain.parse(b"\x05")


def test_constructs_own_compile_uses_the_interpreted_code() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    stock = MetadataRequest.at(12).compile()
    assert stock.parse(request.encode(12)) == request
    assert stock.build(request) == request.encode(12)


def test_field_missing_in_the_version_must_be_default_or_ignorable() -> None:
    replica = FetchRequest(replica_state=FetchRequestReplicaState(replica_id=3))
    assert "replica_state is set, but version 14" in str(rejected_by_both(replica, 14))
    assert build_both(replica, 15)
    assert build_both(FetchRequest(rack_id="r"), 4) == build_both(FetchRequest(), 4)  # ignorable
    instance = HeartbeatRequest(group_id="g", group_instance_id="i")
    rejected_by_both(instance, 2)
    assert parse_both(HeartbeatRequest, build_both(instance, 3), 3) == instance


def test_field_missing_in_the_version_is_parsed_as_its_default() -> None:
    parsed = parse_both(FetchRequest, build_both(FetchRequest(max_wait_ms=5), 4), 4)
    assert parsed == FetchRequest(max_wait_ms=5, session_epoch=-1)


def test_unknown_tagged_fields_are_rejected_in_inflexible_versions() -> None:
    request = HeartbeatRequest(group_id="g")
    request.unknown_tagged_fields = ((5, b"x"),)
    rejected_by_both(request, 3)
    assert build_both(request, 4)


def test_tagged_fields_with_their_default_are_omitted() -> None:
    bare = build_both(ApiVersionsResponse(), 3)
    assert bare.endswith(b"\x00")
    same = ApiVersionsResponse(supported_features=[], finalized_features_epoch=-1, zk_migration_ready=False)
    assert build_both(same, 3) == bare
    partition = FetchResponsePartitionData(current_leader=FetchResponseLeaderIdAndEpoch())
    full = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    default = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[FetchResponsePartitionData()])])
    assert build_both(full, 12) == build_both(default, 12)
    partition.current_leader.leader_id = 4
    assert len(build_both(full, 12)) > len(build_both(default, 12))


def test_nullable_tagged_field_differs_from_its_default_by_null() -> None:
    """A tagged array whose default is empty writes null; one whose default is null writes empty."""
    record = BrokerRegistrationChangeRecord(broker_id=1, cordoned_log_dirs=[])
    assert parse_both(BrokerRegistrationChangeRecord, build_both(record, 3), 3) == record
    assert build_both(record, 3) != build_both(BrokerRegistrationChangeRecord(broker_id=1), 3)


def test_known_and_unknown_tags_are_written_in_ascending_order() -> None:
    response = ApiVersionsResponse(supported_features=[SupportedFeatureKey(name="f")], zk_migration_ready=True)
    response.unknown_tagged_fields = ((9, b"nine"), (4, b""))
    again = parse_both(ApiVersionsResponse, build_both(response, 3), 3)
    assert again.unknown_tagged_fields == ((4, b""), (9, b"nine"))
    assert build_both(again, 3) == build_both(response, 3)


def test_unknown_field_with_a_known_tag_is_rejected() -> None:
    response = ApiVersionsResponse()
    response.unknown_tagged_fields = ((3, b"\x01"),)
    with pytest.raises(ValueError, match="tag 3"):
        response.encode(3)
    with pytest.raises(ConstructError):
        ApiVersionsResponse.at(3).build(response)


def flexible_vectors() -> list[Vector]:
    return [vector for vector in vectors() if vector.version >= vector.message_class.flexible_since]


def test_unknown_tagged_fields_of_the_message_are_kept_in_every_flexible_version() -> None:
    """KIP-482: fields of a newer Kafka are not lost when a message is forwarded."""
    section = b"\x02" + encode_unsigned_varint(30000) + b"\x03abc" + encode_unsigned_varint(2**31) + b"\x00"
    count = 0
    for vector in flexible_vectors():
        if vector.message_class is RequestHeader or not vector.data.endswith(b"\x00"):
            continue
        bare = vector.message_class.decode(vector.data, vector.version)
        taken = {field.tag for field in bare.declared if field.tag >= 0}
        if taken and len(bare.encode(vector.version)) != len(vector.data):
            continue
        data = vector.data[:-1] + section
        try:
            message = parse_both(vector.message_class, data, vector.version)
        except ProtocolError:
            assert taken  # the last byte belongs to a tagged field and is not the count of the section
            continue
        assert message.unknown_tagged_fields == ((30000, b"abc"), (2**31, b""))
        assert build_both(message, vector.version) == data
        count += 1
    assert count > 1000


def test_unknown_tagged_fields_of_a_nested_struct_are_kept() -> None:
    topic = MetadataRequestTopic(name="t")
    topic.unknown_tagged_fields = ((77, b"later"),)
    request = MetadataRequest(topics=[topic])
    parsed = parse_both(MetadataRequest, build_both(request, 12), 12)
    assert parsed == request
    assert parsed.topics[0].unknown_tagged_fields == ((77, b"later"),)


def test_tag_known_in_a_later_version_is_kept_as_unknown() -> None:
    newer = BrokerRegistrationChangeRecord(broker_id=1, log_dirs=[ZERO_UUID])
    older = parse_both(BrokerRegistrationChangeRecord, build_both(newer, 2), 1)
    assert [tag for tag, _ in older.unknown_tagged_fields] == [2]
    assert older.log_dirs == []
    assert build_both(older, 1) == build_both(newer, 2)


def test_tagged_field_must_match_its_size() -> None:
    good = build_both(ApiVersionsResponse(finalized_features_epoch=7), 3)
    assert good.endswith(bytes([1, 1, 8]) + (7).to_bytes(8))
    for size in (7, 9):
        bad = good[:-9] + bytes([size]) + (7).to_bytes(8) + b"\0" * (size - 8)
        with pytest.raises(ProtocolError, match="does not match its size"):
            ApiVersionsResponse.decode(bad, 3)
        with pytest.raises(ConstructError):
            ApiVersionsResponse.at(3).parse(bad)


def test_strings_must_be_utf_8() -> None:
    with pytest.raises(ProtocolError, match="utf-8"):
        TopicRecord.decode(b"\x03\xff\xfe" + ZERO_UUID + b"\0", 0)
    with pytest.raises(ConstructError):
        TopicRecord.at(0).parse(b"\x03\xff\xfe" + ZERO_UUID + b"\0")


def test_every_byte_except_zero_is_true() -> None:
    """As Kafka's `readByte() != 0`."""
    for byte in (1, 2, 127, 128, 255):
        data = b"\x00\x00\x00\x00" + bytes([byte])
        assert parse_both(MetadataRequest, data, 4).allow_auto_topic_creation is True
    assert parse_both(MetadataRequest, bytes(5), 4).allow_auto_topic_creation is False


def test_null_in_a_field_that_is_not_nullable_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="may not be null"):
        TopicRecord.decode(b"\x00" + ZERO_UUID + b"\0", 0)
    with pytest.raises(ProtocolError, match="may not be null"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)


@for_each(
    "message",
    [
        TopicRecord(name=None),  # type: ignore[arg-type]
        TopicRecord(name=b"bytes"),  # type: ignore[arg-type]
        TopicRecord(name="\ud800"),
        TopicRecord(name="n" * 32768),
        TopicRecord(topic_id=b"short"),
        TopicRecord(topic_id="0123456789abcdef"),  # type: ignore[arg-type]
        TopicRecord(topic_id=None),  # type: ignore[arg-type]
    ],
    ids=["None", "bytes", "surrogate", "long", "short uuid", "text uuid", "no uuid"],
)
def test_value_of_the_wrong_type_or_size_is_a_value_error(message: TopicRecord) -> None:
    with pytest.raises(ValueError, match=r"TopicRecord|string|uuid|null"):
        message.encode(0)
    with pytest.raises((ConstructError, TypeError)):
        TopicRecord.at(0).build(message)


def test_number_out_of_range_is_a_value_error() -> None:
    for acks in (2**15, -(2**15) - 1, "1", None, 1.5):
        with pytest.raises(ValueError, match="ProduceRequest v9 cannot be encoded"):
            ProduceRequest(acks=acks).encode(9)  # type: ignore[arg-type]


def test_longest_string_and_long_arrays_round_trip() -> None:
    record = TopicRecord(name="é" * 16383 + "x", topic_id=bytes(range(16)))
    assert parse_both(TopicRecord, build_both(record, 0), 0) == record
    request = MetadataRequest(topics=[MetadataRequestTopic(name=str(n)) for n in range(300)])
    for version in (1, 12):
        assert parse_both(MetadataRequest, build_both(request, version), version) == request


def test_records_are_a_view_of_the_frame() -> None:
    frame = bytearray(produce(b"batch").encode(9))
    records = ProduceRequest.decode(memoryview(frame), 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"batch"
    assert records.obj is frame
    records[0:1] = b"B"
    assert b"Batch" in frame


def produce(records: object) -> ProduceRequest:
    data = PartitionProduceData(records=records)  # type: ignore[arg-type]
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])])


def test_records_are_not_copied_when_built() -> None:
    batch = memoryview(bytes(1000))
    chunks = produce(batch).encode_chunks(9)
    assert [chunk is batch for chunk in chunks] == [False, True, False]
    piece = FileSlice(5)
    chunks = produce([batch, piece]).encode_chunks(9)
    assert [chunks[1] is batch, chunks[2] is piece, len(chunks)] == [True, True, 4]
    assert build_both(produce([batch, piece]), 9) == build_both(produce(bytes(1000) + b"sssss"), 9)


def test_empty_and_null_records_add_no_chunk() -> None:
    for records in (None, b"", [], ()):
        assert [type(chunk) for chunk in produce(records).encode_chunks(9)] == [bytes]
    assert build_both(produce(None), 9) != build_both(produce(b""), 9)
    assert build_both(produce([]), 9) == build_both(produce(b""), 9)


class Frame(bytearray):
    """A bytearray that supports weak references."""


def test_frame_is_released_with_its_message() -> None:
    """Construct's own parse leaves reference cycles, which would keep large frames in memory until a collection."""
    gc.collect()
    gc.disable()
    try:
        for cut in (0, 3):
            data = produce(bytes(1000)).encode(9)
            frame = Frame(data[: len(data) - cut])
            reference = weakref.ref(frame)
            try:
                message = ProduceRequest.decode(frame, 9)
            except ProtocolError:
                message = None  # type: ignore[assignment]
            assert (message is None) == (cut > 0)
            del message, frame
            assert reference() is None
    finally:
        gc.enable()


def test_parsed_structs_have_every_attribute() -> None:
    """Compiled code creates objects without calling their constructor."""
    for vector in vectors()[::11]:
        message = vector.message_class.decode(vector.data, vector.version)
        repr(message)
        for field in message.declared:
            getattr(message, field.name)


def test_string_longer_than_kafkas_limit_is_rejected() -> None:
    """Kafka limits a string to 32767 bytes, in the compact form too."""
    longest = encode_unsigned_varint(32768) + b"n" * 32767 + ZERO_UUID + b"\0"
    assert parse_both(TopicRecord, longest, 0)
    longer = encode_unsigned_varint(32769) + b"n" * 32768 + ZERO_UUID + b"\0"
    with pytest.raises(ProtocolError, match="a string of 32768 bytes"):
        TopicRecord.decode(longer, 0)
    with pytest.raises(ConstructError, match="32768 bytes"):
        TopicRecord.at(0).parse(longer)
