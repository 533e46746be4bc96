"""Requests of a few megabytes with millions of elements: their number is bounded, not only their bytes."""

from __future__ import annotations

import struct

import pytest

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.messages.groups.classic_groups import (
    DescribeGroupsRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.wire.messages.groups.offsets import OffsetCommitRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.varint import encode_unsigned_varint
from tests.hostile.attacker import Attacker, frame
from tests.hostile.harness import beside_healthy_client

MEMBERS = 20


@pytest.mark.parametrize("megabytes", [3, 10])
def test_offset_commit_of_empty_structs(victim, megabytes) -> None:
    count = megabytes * 1_000_000 // 3
    empty = b"\x01\x01\x00"  # a topic without name, without partitions, without tagged fields
    body = b"\x02g" + bytes(4) + b"\x01\x00" + encode_unsigned_varint(count + 1) + empty * count + b"\x00"
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        attacker.send_body(OffsetCommitRequest, 9, body)
        attacker.read_or_closed()


def test_describe_groups_with_a_million_empty_names(victim) -> None:
    count = 1_000_000
    body = encode_unsigned_varint(count + 1) + b"\x01" * count + b"\x00\x00"
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        attacker.send_body(DescribeGroupsRequest, 5, body)
        attacker.read_or_closed()


def test_describe_groups_within_the_budget_answers_a_repeated_name_once(victim) -> None:
    request = DescribeGroupsRequest(groups=["one", "two"] * 10_000)
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        assert [group.group_id for group in attacker(request, 5).groups] == ["one", "two"]


def test_header_with_a_million_and_a_half_of_tagged_fields(victim) -> None:
    count = 1_500_000
    tags = b"".join(encode_unsigned_varint(tag) + b"\x00" for tag in range(count))
    head = struct.pack(">hhih", ApiKey.METADATA, 12, 0, 7) + b"hostile" + encode_unsigned_varint(count) + tags
    body = head + b"\x01\x00\x00\x00"
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        attacker.sent.append((ApiKey.METADATA, 12))
        attacker.socket.sendall(struct.pack(">i", len(body)) + body)
        attacker.read_or_closed()


def test_create_topics_of_12000_names_with_dots(victim) -> None:
    topics = [CreatableTopic(name=f"a.{n}", num_partitions=1, replication_factor=1) for n in range(12_000)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=True)
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        attacker(request, 7)


def test_members_with_10_mb_of_metadata_each(victim) -> None:
    """The broker keeps what a group needs, but not 200 MB: it refuses members, or closes their connections."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=bytes(10 << 20))]
    request = JoinGroupRequest(
        group_id="heavy", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="consumer",
        protocols=protocols,
    )  # fmt: skip
    sent = frame(request, 3)
    with beside_healthy_client(victim, memory_limit=200 << 20) as healthy:
        for _ in range(MEMBERS):
            attacker = Attacker(victim, healthy)
            try:
                attacker.socket.sendall(sent)
            except ConnectionError:
                continue
        healthy.settle()
