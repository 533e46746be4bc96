"""Groups, their members, fetch sessions, producers and transactions."""

from __future__ import annotations

import uuid

from barnabas.wire.batches.batch_builder import BatchBuilder
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.groups.share_groups import ShareFetchRequest, ShareGroupHeartbeatRequest
from barnabas.wire.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.schema import Message
from tests.hostile.floods.requests import create
from tests.hostile.floods.run import Flood, Run
from tests.support.requests.absurd_values import HEALTHY_TOPIC

BATCH = 50
"""Requests of a step."""
GROUP, TRANSACTION = 0, 1
LISTENER = ("SASL_SSL",)


def member_id() -> str:
    """A new id of a member, as clients make it."""
    return str(uuid.uuid4())


def found(run: Run, kind: int, key: str) -> None:
    """Wait for the coordinator of a group or of a transactional id."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    while run.ask(request, 4).coordinators[0].error_code:
        pass


def consumer(group: str, **options: object) -> tuple[Message, int]:
    """A member of the consumer protocol that joins."""
    fields: dict[str, object] = {"subscribed_topic_names": [HEALTHY_TOPIC], "topic_partitions": []} | options
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id(), member_epoch=0, rebalance_timeout_ms=60_000, **fields
    )
    return request, 1


def many_groups(run: Run) -> None:
    """Consumer groups of one member each."""
    found(run, GROUP, "g")
    for number in run:
        run.pipeline([consumer(f"group-{number}-{index}") for index in range(BATCH)])


def many_members(run: Run) -> None:
    """Members of one consumer group."""
    found(run, GROUP, "g")
    for _ in run:
        run.pipeline([consumer("members") for _ in range(BATCH)])


def many_static_members(run: Run) -> None:
    """Static members of one consumer group, each another one."""
    found(run, GROUP, "g")
    for number in run:
        run.pipeline([consumer("static", instance_id=f"instance-{number}-{index}") for index in range(BATCH)])


def classic_members(run: Run) -> None:
    """Members of one classic group, which wait for a rebalance, each on a connection of its own."""
    found(run, GROUP, "g")
    for _ in run:
        request = JoinGroupRequest(
            group_id="classic", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(100))],
        )  # fmt: skip
        peer = run.attacker()
        if peer is not None:
            peer.send(request, 3)


def regular_expressions(run: Run) -> None:
    """Members with expressions that take long with a matcher that goes back."""
    found(run, GROUP, "g")
    for number in run:
        names = [f"(a|aa)+{number}{index}$|(.*)*{index}" for index in range(BATCH)]
        run.pipeline([consumer("regex", subscribed_topic_names=None, subscribed_topic_regex=name) for name in names])


def offsets_of_new_groups(run: Run) -> None:
    """Commits of groups that have no members."""
    found(run, GROUP, "g")
    topic = OffsetCommitRequestTopic(
        name=HEALTHY_TOPIC, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    )
    for number in run:
        run.pipeline(
            [(OffsetCommitRequest(group_id=f"offsets-{number}-{index}", topics=[topic]), 8) for index in range(BATCH)]
        )


def fetch_sessions(run: Run) -> None:
    """A new fetch session with each request."""
    requested = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1, session_epoch=0,
        topics=[FetchRequestFetchTopic(topic=HEALTHY_TOPIC, partitions=[requested])],
    )  # fmt: skip
    for _ in run:
        run.pipeline([(request, 12)] * BATCH)


def share_groups(run: Run) -> None:
    """Share groups of one member each, with a share session."""
    found(run, GROUP, "g")
    for number in run:
        requests: list[tuple[Message, int]] = []
        for index in range(BATCH // 2):
            group, member = f"share-{number}-{index}", member_id()
            joins = ShareGroupHeartbeatRequest(
                group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=[HEALTHY_TOPIC]
            )
            requests.append((joins, 1))
            fetch = ShareFetchRequest(group_id=group, member_id=member, share_session_epoch=0, max_wait_ms=0)
            requests.append((fetch, 1))
        run.pipeline(requests)


def producers(run: Run) -> None:
    """First batches of idempotent producers, each another one."""
    create(run, "producers")
    for number in run:
        requests: list[tuple[Message, int]] = []
        for index in range(BATCH):
            builder = BatchBuilder(0, 0, producer_id=number * BATCH + index, producer_epoch=0, base_sequence=0)
            builder.append(run.now_ms(), None, b"v")
            data = [PartitionProduceData(index=0, records=builder.build())]
            topic = TopicProduceData(name="producers", partition_data=data)
            requests.append((ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic]), 9))
        run.pipeline(requests)


def producer_ids(run: Run) -> None:
    """InitProducerId without end."""
    for _ in run:
        run.pipeline([(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)] * BATCH)


def transactional_ids(run: Run) -> None:
    """A new transactional id with each request."""
    found(run, TRANSACTION, "t")
    for number in run:
        ids = [f"transactional-{number}-{one}" for one in range(BATCH)]
        run.pipeline([(InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=60_000), 4) for one in ids])


FLOODS = [
    Flood("groups", many_groups, LISTENER, "barnabas.groups.max", 4, {"barnabas.groups.max": "5000"}),
    Flood("members of a group", many_members, LISTENER, "group.consumer.max.size; barnabas.group.max.bytes", 4,
          {"group.consumer.max.size": "2000"}),
    Flood("static members of a group", many_static_members, LISTENER, "group.consumer.max.size; "
          "barnabas.group.max.bytes", 4, {"group.consumer.max.size": "2000"}),
    Flood("classic members of a group", classic_members, LISTENER, "group.max.size; barnabas.group.max.bytes", 30,
          {"group.max.size": "200"}),
    Flood("regular expressions", regular_expressions, LISTENER, "group.consumer.regex.refresh.interval.ms; linear time",
          4, {"group.consumer.max.size": "2000"}),
    Flood("offsets of new groups", offsets_of_new_groups, LISTENER, "barnabas.groups.max", 4,
          {"barnabas.groups.max": "5000"}),
    Flood("fetch sessions", fetch_sessions, LISTENER, "max.incremental.fetch.session.cache.slots", 10),
    Flood("share groups and sessions", share_groups, LISTENER, "group.share.max.share.sessions; barnabas.groups.max", 4,
          {"barnabas.groups.max": "5000"}),
    Flood("producers of a partition", producers, LISTENER, "barnabas.partition.producers.max", 6),
    Flood("producer ids", producer_ids, LISTENER, "no state", 10),
    Flood("transactional ids", transactional_ids, LISTENER, "barnabas.transactional.ids.max", 4,
          {"barnabas.transactional.ids.max": "5000"}),
]  # fmt: skip
