"""A null struct in a tagged field, with bytes that Kafka 4.4.0 wrote for a member of a consumer group."""

from __future__ import annotations

from barnabas.wire.messages.records.coordinator_records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue

KAFKAS = bytes.fromhex("00000872646b61666b610b2f3132372e302e302e3102027401000493e00001000100")
MEMBER = ConsumerGroupMemberMetadataValue(
    instance_id=None,
    rack_id=None,
    client_id="rdkafka",
    client_host="/127.0.0.1",
    subscribed_topic_names=["t"],
    subscribed_topic_regex="",
    rebalance_timeout_ms=300_000,
    server_assignor=None,
    classic_member_metadata=None,
)


def test_null_struct_in_a_tagged_field_is_a_zero() -> None:
    assert ConsumerGroupMemberMetadataValue.decode(KAFKAS, 0) == MEMBER
    assert MEMBER.encode(0) == KAFKAS
    assert ConsumerGroupMemberMetadataValue.at(0).parse(KAFKAS) == MEMBER
    assert ConsumerGroupMemberMetadataValue.at(0).build(MEMBER) == KAFKAS


def test_default_is_an_empty_struct_and_is_omitted() -> None:
    member = ConsumerGroupMemberMetadataValue(client_id="c", client_host="h")
    assert member.classic_member_metadata == ClassicMemberMetadata()
    assert member.encode(0).endswith(b"\x00")
    assert ConsumerGroupMemberMetadataValue.decode(member.encode(0), 0) == member
