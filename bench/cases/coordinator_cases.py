"""The cases "kill -9 of the coordinator of …" of the group `Cluster`: how long until the client is answered again.

A group, a transaction or a share group works on three brokers. The broker that leads its partition of the internal
topic is killed, and the client asks at short intervals until it succeeds with a commit and a heartbeat, the commit
of its open transaction, or acknowledged records and further ones. Figures are from the kill to that answer. Until the
broker's session has ended no other broker may lead; so the limit is the session timeout and two seconds.

The clients of groups and transactions send their requests themselves, so that the pauses of no library are measured;
the clients of a share group are librdkafka's.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Producer, ShareConsumer

from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from barnabas.client.admin.topics import describe_topics
from barnabas.client.cluster import GROUP, TRANSACTION, Cluster, parse_addresses
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import ClientError
from barnabas.client.transaction import LAST_END_VERSION, LAST_PRODUCE_VERSION, Transaction
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.types import Uuid
from bench.cases.case import Case, Figures, Goal, Group, Mode, Scale
from bench.cases.cluster import SESSION_MS, TIMEOUT_S, TOPIC, Served, create_topic, served

LIMIT_MS = SESSION_MS + 2000
RETRY_S = 0.02
SHARE = 2
"""The type of the key of a share group's state, for FindCoordinator."""
GROUP_SESSION_MS = 30_000
"""Sessions longer than the failover: a member that is removed gets no answers."""
LAST_NAMED_COMMIT = 9
"""The last version of OffsetCommit with names of topics."""
STOCK = 20_000
"""Records that the share group has before it."""
POLLED = 100
BEFORE_THE_KILL = 3
ACKS_ALL = -1
MOVING = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""Answers after which a client asks again; any other error is a failure of the case."""
Attempt = Callable[[NodeConnection], int]
"""Sends requests to the coordinator; the first error code that is not 0, else 0."""


class Coordinator:
    """The coordinator of one key, wherever it is."""

    def __init__(self, server: Served, key_type: int, key: str) -> None:
        self._server = server
        self._addresses = server.addresses
        self.key_type, self.key = key_type, key
        self.broker = -1
        """The broker that was asked last."""
        self._connections: dict[str, NodeConnection] = {}

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()

    def ask(self, attempt: Attempt) -> float:
        """Repeat an attempt until it succeeds; the time of that. RuntimeError for an error that does not pass."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                code = attempt(self._find(deadline))
                if not code:
                    return time.monotonic()
                if code not in MOVING:
                    raise RuntimeError(f"{self.key} was answered {ErrorCode(code).name}")
            except ClientError:
                pass  # the broker is killed, or was named as the coordinator after its end
            time.sleep(RETRY_S)
        raise RuntimeError(f"the coordinator of {self.key} did not answer again in {TIMEOUT_S:.0f} s")

    def kill(self) -> float:
        """Kill the broker that was asked last; the time of that."""
        os.kill(self._server.pid_of(self.broker), signal.SIGKILL)
        del self._addresses[self.broker - 1]
        return time.monotonic()

    def _find(self, deadline: float) -> NodeConnection:
        """A connection to the coordinator that a running broker names. ClientError if there is none now."""
        request = g.FindCoordinatorRequest(key_type=self.key_type, coordinator_keys=[self.key])
        for address in self._addresses:
            response = self._connection(address, deadline).call(request, g.FindCoordinatorResponse, deadline)
            (coordinator,) = response.coordinators
            if not coordinator.error_code:
                self.broker = coordinator.node_id
                return self._connection(f"{coordinator.host}:{coordinator.port}", deadline)
        raise ClientError(f"no running broker names the coordinator of {self.key}")

    def _connection(self, address: str, deadline: float) -> NodeConnection:
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            ((host, port),) = parse_addresses(address)
            connection = self._connections[address] = NodeConnection(host, port, "bench", "1")
            connection.open(deadline)
        return connection


def _failure(codes: Iterator[int]) -> int:
    return next((code for code in codes if code), 0)


class Member:
    """The only member of a group, which commits offset after offset of one partition."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.member_id = ""
        self.epoch = -1
        """Or the generation."""
        self._committed = 0

    def join(self, node: NodeConnection) -> int:
        """Join the group."""
        raise NotImplementedError

    def heartbeat(self, node: NodeConnection) -> int:
        """Send a heartbeat."""
        raise NotImplementedError

    def work(self, node: NodeConnection) -> int:
        """A commit and a heartbeat."""
        return self._commit(node) or self.heartbeat(node)

    def _commit(self, node: NodeConnection) -> int:
        partition = o.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self._committed, committed_metadata=""
        )
        request = o.OffsetCommitRequest(
            group_id=self.group,
            member_id=self.member_id,
            generation_id_or_member_epoch=self.epoch,
            topics=[o.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        response = node.call(request, o.OffsetCommitResponse, time.monotonic() + TIMEOUT_S, LAST_NAMED_COMMIT)
        self._committed += 1
        return _failure(partition.error_code for topic in response.topics for partition in topic.partitions)


class ClassicMember(Member):
    """Of the classic protocol."""

    def join(self, node: NodeConnection) -> int:
        """JoinGroup, with the member id once it is known, and SyncGroup."""
        deadline = time.monotonic() + TIMEOUT_S
        metadata = b"\0\1" + ConsumerProtocolSubscription(topics=[TOPIC]).encode(1)
        request = g.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=GROUP_SESSION_MS,
            rebalance_timeout_ms=GROUP_SESSION_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[g.JoinGroupRequestProtocol(name="bench", metadata=metadata)],
        )
        joined = node.call(request, g.JoinGroupResponse, deadline)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return self.join(node)
        if joined.error_code:
            return joined.error_code
        self.member_id, self.epoch = joined.member_id, joined.generation_id
        synced = g.SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="bench",
            assignments=[g.SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"\0")],
        )
        return node.call(synced, g.SyncGroupResponse, deadline).error_code

    def heartbeat(self, node: NodeConnection) -> int:
        """Heartbeat."""
        request = g.HeartbeatRequest(group_id=self.group, generation_id=self.epoch, member_id=self.member_id)
        return node.call(request, g.HeartbeatResponse, time.monotonic() + TIMEOUT_S).error_code


class ConsumerMember(Member):
    """Of the consumer protocol (KIP-848)."""

    def join(self, node: NodeConnection) -> int:
        """The first heartbeat, with a subscription."""
        self.member_id = self.member_id or str(uuid.uuid4())
        return self._send(
            node, member_epoch=0, rebalance_timeout_ms=60_000, subscribed_topic_names=[TOPIC], topic_partitions=[]
        )

    def heartbeat(self, node: NodeConnection) -> int:
        """ConsumerGroupHeartbeat."""
        return self._send(node, member_epoch=self.epoch)

    def _send(self, node: NodeConnection, **fields: Any) -> int:
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, **fields)
        response = node.call(request, ConsumerGroupHeartbeatResponse, time.monotonic() + TIMEOUT_S)
        if not response.error_code:
            self.epoch = response.member_epoch
        return response.error_code


def group_killed(group: Group, kind: str, _: Scale, *, make: Callable[[str], Member]) -> Figures:
    """A member commits and sends heartbeats; the coordinator of its group is killed."""
    with ExitStack() as stack:
        server = stack.enter_context(served(group, kind))
        create_topic(server, 1)
        member = make(f"bench-{uuid.uuid4()}")
        coordinator = Coordinator(server, GROUP, member.group)
        stack.callback(coordinator.close)
        coordinator.ask(member.join)
        for _ in range(BEFORE_THE_KILL):
            coordinator.ask(member.work)
        killed = coordinator.kill()
        return {"pause ms": (coordinator.ask(member.work) - killed) * 1000}


def transaction_killed(group: Group, kind: str, _: Scale) -> Figures:
    """A producer has records in an open transaction; its coordinator is killed, and the transaction is committed."""
    with ExitStack() as stack:
        server = stack.enter_context(served(group, kind))
        create_topic(server, 1)
        cluster = stack.enter_context(Cluster(server.bootstrap, timeout_s=TIMEOUT_S))
        transaction = Transaction(cluster, f"bench-{uuid.uuid4()}", 60_000)
        coordinator = Coordinator(server, TRANSACTION, transaction.transactional_id)
        stack.callback(coordinator.close)
        transaction.initialize()
        for number in range(BEFORE_THE_KILL):
            _open(cluster, transaction, number)
            transaction.end(commit=True)
        _open(cluster, transaction, BEFORE_THE_KILL)
        coordinator.ask(lambda _: 0)  # find the coordinator
        killed = coordinator.kill()
        return {"pause ms": (coordinator.ask(partial(_commit_of, transaction)) - killed) * 1000}


def _open(cluster: Cluster, transaction: Transaction, number: int) -> None:
    """Add the partition to the transaction and write the record of this number."""
    identity = transaction.identity
    builder = BatchBuilder(
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=number,
        transactional=True,
    )
    builder.append(int(time.time() * 1000), None, b"x" * 100)
    data = p.PartitionProduceData(index=0, records=builder.build())
    request = p.ProduceRequest(
        transactional_id=transaction.transactional_id,
        acks=ACKS_ALL,
        timeout_ms=int(TIMEOUT_S * 1000),
        topic_data=[p.TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    transaction.add([(TOPIC, 0)])

    def attempt(deadline: float) -> None:
        node = cluster.node(cluster.leader(TOPIC, 0, deadline), deadline)
        response = node.call(request, p.ProduceResponse, deadline, LAST_PRODUCE_VERSION)
        code = response.responses[0].partition_responses[0].error_code
        if code:
            raise KafkaError(ErrorCode(code), "a record of a transaction")

    cluster.retry(attempt)


def _commit_of(transaction: Transaction, node: NodeConnection) -> int:
    request = t.EndTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.identity.producer_id,
        producer_epoch=transaction.identity.producer_epoch,
        committed=True,
    )
    return node.call(request, t.EndTxnResponse, time.monotonic() + TIMEOUT_S, LAST_END_VERSION).error_code


def share_state_killed(group: Group, kind: str, _: Scale) -> Figures:
    """A share consumer accepts records; the broker with the state of its share partition is killed.

    That broker leads neither the partition nor the group, since their failover would be measured too.
    """
    with ExitStack() as stack:
        server = stack.enter_context(served(group, kind))
        topic_id = _stocked(server)
        coordinator, name = _share_coordinator(server, topic_id)
        stack.callback(coordinator.close)
        settings = {"bootstrap.servers": server.bootstrap, "group.id": name, "log_level": 0}
        consumer = ShareConsumer(
            {
                **settings,
                "share.acknowledgement.mode": "explicit",
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "max.poll.records": POLLED,
            }
        )
        stack.callback(consumer.close)
        consumer.subscribe([TOPIC])
        for _ in range(BEFORE_THE_KILL):
            _accept(consumer)
        killed = coordinator.kill()
        _accept(consumer)
        return {"pause ms": (time.monotonic() - killed) * 1000}


def _stocked(server: Served) -> Uuid:
    """A topic whose only partition has records, led by broker 1; its id."""
    create_topic(server, 1, [1, 2, 3])
    settings = {"bootstrap.servers": server.bootstrap, "batch.num.messages": POLLED, "acks": "all", "log_level": 0}
    producer = Producer(settings)  # whole batches are given out
    for _ in range(STOCK):
        producer.produce(TOPIC, b"x" * 100)
    if producer.flush(TIMEOUT_S):
        raise RuntimeError("the records of the share group were not acknowledged")
    with Cluster(server.bootstrap) as cluster:
        return describe_topics(cluster, [TOPIC])[0].topic_id


def _share_coordinator(server: Served, topic_id: Uuid) -> tuple[Coordinator, str]:
    """A group whose coordinator and state are with two brokers, the state's not with broker 1; with its name."""
    for _ in range(100):
        name = f"bench-{uuid.uuid4()}"
        of_group = Coordinator(server, GROUP, name)
        of_state = Coordinator(server, SHARE, str(SharePartitionKey(name, topic_id, 0)))
        for coordinator in (of_group, of_state):
            coordinator.ask(lambda _: 0)
        of_group.close()
        if of_state.broker not in (1, of_group.broker):
            with Cluster(server.bootstrap) as cluster:
                alter_config(cluster, "group", name, [ConfigChange("share.auto.offset.reset", SET, "earliest")])
            return of_state, name
        of_state.close()
    raise RuntimeError("every share group has its state with the leader of the partition")


def _accept(consumer: ShareConsumer) -> None:
    """Receive and accept records until an acknowledgement has succeeded, and receive the next ones."""
    deadline = time.monotonic() + TIMEOUT_S
    is_accepted = False
    while time.monotonic() < deadline:
        try:
            messages = [message for message in consumer.poll(0.1) if message.error() is None]
            if messages and is_accepted:
                for message in messages:
                    consumer.acknowledge(message)
                return
            for message in messages:
                consumer.acknowledge(message)
            answers = consumer.commit_sync(TIMEOUT_S) if messages else {}
            is_accepted = is_accepted or bool(answers and not any(answers.values()))
        except KafkaException:
            continue  # records that were not accepted are delivered again
    raise RuntimeError("no acknowledgement has succeeded")


def cases() -> Iterator[Case]:
    """The cases, in order."""
    goals: Mapping[str, Goal] = {"pause ms": Goal(limit=LIMIT_MS)}
    measures: dict[str, Callable[..., Figures]] = {
        "a classic group": partial(group_killed, make=ClassicMember),
        "a consumer group": partial(group_killed, make=ConsumerMember),
        "a transaction": transaction_killed,
        "a share group's state": share_state_killed,
    }
    for what, measure in measures.items():
        yield Case(f"kill -9 of the coordinator of {what}", measure, goals, Mode.OWN_SERVER)
