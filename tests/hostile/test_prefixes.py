"""Requests that differ in a field that the broker looks up: what it keeps of them all is bounded."""

from __future__ import annotations

import pytest

from barnabas.broker.apis.known_prefixes import MOST_BYTES
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from tests.hostile.attacker import Attacker
from tests.hostile.floods.run import MB
from tests.hostile.harness import beside_healthy_client
from tests.support.memory.broker import batch

IN_FLIGHT = 100
NAME = "n" * 200
TOPIC_ID = bytes(15) + b"\1"
PRODUCE_VERSIONS = range(5, 14)
COMMIT_VERSIONS = range(8, 11)


def produce(version: int, number: int) -> Message:
    """A Produce with a timeout that no other has, to a topic that there is not."""
    data = PartitionProduceData(index=0, records=batch(b"x"))
    named = {"name": NAME} if version < 13 else {"topic_id": TOPIC_ID}
    return ProduceRequest(acks=1, timeout_ms=number, topic_data=[TopicProduceData(partition_data=[data], **named)])


def commit(version: int, number: int) -> Message:
    """An OffsetCommit of a member that no other request names."""
    named = {"name": NAME} if version < 10 else {"topic_id": TOPIC_ID}
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [OffsetCommitRequestTopic(partitions=partitions, **named)]
    return OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id=f"{NAME}{number}", topics=topics
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.soak)])
def test_made_up_prefixes_take_bounded_memory(victim, count) -> None:
    requests = [(produce, version) for version in PRODUCE_VERSIONS]
    requests += [(commit, version) for version in COMMIT_VERSIONS]
    with beside_healthy_client(victim) as healthy, Attacker(victim, healthy) as attacker:
        for make, version in requests:  # codecs are compiled
            attacker(make(version, 0), version)
        before = victim.status("VmRSS")
        for make, version in requests:
            for start in range(1, count + 1, IN_FLIGHT):
                for number in range(start, start + IN_FLIGHT):
                    request = make(version, number)
                    for _ in range(2):  # a prefix is learned when it comes again
                        attacker.send(request, version)
                for _ in range(2 * IN_FLIGHT):
                    attacker.read()
        assert victim.status("VmRSS") - before < 3 * MOST_BYTES + 8 * MB
