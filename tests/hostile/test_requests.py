"""Requests of a few megabytes with millions of elements: their number is bounded, not only their bytes."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.groups import DescribeGroupsRequest
from barnabas.wire.messages.offsets import OffsetCommitRequest
from barnabas.wire.varint import encode_unsigned_varint
from tests.hostile.attacker import Attacker
from tests.hostile.harness import beside_healthy_client


@pytest.mark.parametrize("megabytes", [3, 10])
@pytest.mark.xfail(strict=True, reason="WIRE: the elements of a request are not bounded")
def test_offset_commit_of_empty_structs(victim, megabytes) -> None:
    count = megabytes * 1_000_000 // 3
    empty = b"\x01\x01\x00"  # a topic without name, without partitions, without tagged fields
    body = b"\x02g" + bytes(4) + b"\x01\x00" + encode_unsigned_varint(count + 1) + empty * count + b"\x00"
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim.bootstrap, healthy)
        attacker.send_body(OffsetCommitRequest, 9, body)
        attacker.read_or_closed()


@pytest.mark.xfail(strict=True, reason="WIRE: repeated names are answered each")
def test_describe_groups_with_a_million_empty_names(victim) -> None:
    count = 1_000_000
    body = encode_unsigned_varint(count + 1) + b"\x01" * count + b"\x00\x00"
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim.bootstrap, healthy)
        attacker.send_body(DescribeGroupsRequest, 5, body)
        attacker.read_or_closed()
