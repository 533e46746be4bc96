"""Group members that implement the protocol, many in one process, to measure the broker and not a client library.

python -m bench.members HOST:PORT TOPIC PARTITIONS classic|consumer MEMBERS ROUNDS [kill]

All members of a new group join at the same time; measured is the time until every partition has one owner. With `kill`
it is the time from the loss of a tenth of the members until the others own all partitions. Members send heartbeats as
clients do: immediately after a change, otherwise at an interval. The output is that of `load.c`; a request is a round.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages import consumer_groups as c
from barnabas.wire.messages import groups as g
from barnabas.wire.messages import offsets as o
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from bench.confluent_load import PATIENCE_S, result

SESSION_MS = 2_000
LONG_SESSION_MS = 1_800_000
REBALANCE_MS = 60_000
CLASSIC_HEARTBEAT_S = 0.5
"""Heartbeat interval of a classic member; the default of clients is 3 s."""

VERSIONS = {8: 8, 10: 4, 11: 9, 12: 4, 14: 5, 68: 1}
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
RETRY_S = 0.05


class Member:
    """One connection with one request in flight, or a time for the next."""

    def __init__(self, address: tuple[str, int], group: str, topic: str, partitions: int) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.group = group
        self.topic = topic
        self.partitions = partitions
        self.member_id = ""
        self.owned: frozenset[int] = frozenset()
        self.next_s: float | None = None
        self._received = bytearray()
        self._api_key = 0

    def ask(self, request: Message) -> None:
        """Send a request; its answer is passed to `take`."""
        self.next_s = None
        self._api_key = request.api_key
        chunks = encode_request(request, VERSIONS[request.api_key], 1, "bench")
        self.socket.sendall(b"".join(chunk_bytes(chunk) for chunk in chunks))

    def pull(self) -> None:
        """Read available data; pass a complete answer to `take`."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemExit("the broker closed the connection of a member")
        self._received += data
        if len(self._received) < 4 or len(self._received) < 4 + int.from_bytes(self._received[:4], "big"):
            return
        frame, self._received = bytes(self._received[4:]), bytearray()
        version = VERSIONS[self._api_key]
        _, place = parse_response_header(frame, self._api_key, version)
        self.take(message_for(self._api_key)[1].decode(frame[place:], version))

    def join(self) -> None:
        """Begin."""
        raise NotImplementedError

    def take(self, answer: Any) -> None:
        """Process an answer."""
        raise NotImplementedError

    def tick(self) -> None:
        """Send the next request."""
        raise NotImplementedError


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat; the leader assigns the partitions round-robin."""

    generation = -1
    session_ms = SESSION_MS

    def join(self) -> None:
        """JoinGroup, with the member id of the broker if there is one."""
        self.owned = frozenset()
        metadata = b"\0\1" + ConsumerProtocolSubscription(topics=[self.topic]).encode(1)
        self.ask(
            g.JoinGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=[g.JoinGroupRequestProtocol(name="bench", metadata=metadata)],
            )
        )

    def take(self, answer: Any) -> None:
        """Join, then sync, then heartbeat until a rebalance begins."""
        code = answer.error_code
        if isinstance(answer, g.JoinGroupResponse) and code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
            if code:
                self.join()
            else:
                self._sync(answer)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif code in NOT_YET and self.generation < 0:
            self.next_s = time.monotonic() + RETRY_S
        elif code:
            raise SystemExit(f"a member was answered {ErrorCode(code).name}")
        else:
            if isinstance(answer, g.SyncGroupResponse):
                self.owned = frozenset(memoryview(answer.assignment).cast("H"))
            self.next_s = time.monotonic() + CLASSIC_HEARTBEAT_S

    def _sync(self, joined: g.JoinGroupResponse) -> None:
        self.generation = joined.generation_id
        ids = [member.member_id for member in joined.members]
        dealt = [memoryview(bytearray(2 * len(range(n, self.partitions, len(ids))))).cast("H") for n in range(len(ids))]
        for partition in range(self.partitions if ids else 0):
            dealt[partition % len(ids)][partition // len(ids)] = partition
        self.ask(
            g.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="bench",
                assignments=[
                    g.SyncGroupRequestAssignment(member_id=one, assignment=part.tobytes())
                    for one, part in zip(ids, dealt, strict=True)
                ],
            )
        )

    def tick(self) -> None:
        """Heartbeat."""
        if self.generation < 0:
            self.join()
            return
        self.ask(g.HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id))


class RestingMember(ClassicMember):
    """Joins its own group, commits offset 5 of partition 0, and disconnects; its session timeout is 30 minutes."""

    session_ms = LONG_SESSION_MS
    number = 0

    def take(self, answer: Any) -> None:
        """Join, sync, commit."""
        if isinstance(answer, g.SyncGroupResponse) and not answer.error_code:
            place = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
            self.ask(
                o.OffsetCommitRequest(
                    group_id=self.group,
                    generation_id_or_member_epoch=self.generation,
                    member_id=self.member_id,
                    topics=[o.OffsetCommitRequestTopic(name=self.topic, partitions=[place])],
                )
            )
        elif isinstance(answer, o.OffsetCommitResponse):
            (code,) = {partition.error_code for topic in answer.topics for partition in topic.partitions}
            if code:
                raise SystemExit(f"a commit was answered {ErrorCode(code).name}")
            self.owned = frozenset({self.number})
        else:
            super().take(answer)


class ConsumerMember(Member):
    """ConsumerGroupHeartbeat (KIP-848): the broker assigns, the member adopts the assignment and reports it."""

    epoch = 0
    topic_id = bytes(16)

    def join(self) -> None:
        """The first heartbeat has the subscription."""
        self.member_id = str(uuid.uuid4())
        self.ask(
            c.ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=0,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[self.topic],
                topic_partitions=[],
            )
        )

    def take(self, answer: c.ConsumerGroupHeartbeatResponse) -> None:
        """Adopt a new assignment."""
        if answer.error_code in NOT_YET and not self.epoch:
            self.next_s = time.monotonic() + RETRY_S
            return
        if answer.error_code:
            raise SystemExit(f"a member was answered {ErrorCode(answer.error_code).name}: {answer.error_message}")
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            self.next_s = time.monotonic() + answer.heartbeat_interval_ms / 1000
            return
        owned = frozenset(index for topic in answer.assignment.topic_partitions for index in topic.partitions)
        for topic in answer.assignment.topic_partitions:
            self.topic_id = topic.topic_id
        if owned == self.owned:
            self.next_s = time.monotonic() + answer.heartbeat_interval_ms / 1000
            return
        self.owned = owned
        self.tick(changed=True)

    def tick(self, *, changed: bool = False) -> None:
        """Heartbeat; after a change with the owned partitions."""
        if not self.epoch:
            self.join()
            return
        part = c.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self.topic_id, partitions=sorted(self.owned))
        self.ask(
            c.ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                topic_partitions=([part] if self.owned else []) if changed else None,
            )
        )


class Finder(Member):
    """Requests the coordinator until there is one: Kafka creates its topic at the first request."""

    def join(self) -> None:
        """FindCoordinator."""
        self.ask(g.FindCoordinatorRequest(coordinator_keys=[self.group]))

    def take(self, answer: g.FindCoordinatorResponse) -> None:
        """Finish, or retry."""
        if answer.coordinators[0].error_code:
            self.next_s = time.monotonic() + RETRY_S
        else:
            self.owned = frozenset({0})

    def tick(self) -> None:
        """Ask again."""
        self.join()


KINDS: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}


def settle(members: list[Member], partitions: int) -> float:
    """Run the members until every partition has one owner; returns seconds."""
    started = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.socket, selectors.EVENT_READ, member)
        while not _is_shared_out(members, partitions):
            now = time.monotonic()
            if now - started > PATIENCE_S:
                raise SystemExit(f"{len(members)} members do not own all {partitions} partitions")
            for member in members:
                if member.next_s is not None and member.next_s <= now:
                    member.tick()
            soon = min((member.next_s for member in members if member.next_s is not None), default=now + 1)
            for key, _ in selector.select(max(0.0, soon - time.monotonic())):
                key.data.pull()
    return time.monotonic() - started


def _is_shared_out(members: list[Member], partitions: int) -> bool:
    """Whether each partition has one owner and no member has more than its share: the first member may have had all."""
    owners = Counter(index for member in members for index in member.owned)
    fair = -(-partitions // len(members))
    is_fair = all(len(member.owned) <= fair for member in members)
    return is_fair and len(owners) == partitions and set(owners.values()) == {1}


def rounds(bootstrap: str, topic: str, partitions: int, kind: str, count: int, *, kill: bool) -> Iterator[float]:
    """The seconds of each round, each with a new group."""
    host, port = bootstrap.split(":")
    address = (host, int(port))
    while True:
        group = f"bench-{uuid.uuid4()}"
        finder = Finder(address, group, topic, 1)
        finder.join()
        settle([finder], 1)
        finder.socket.close()
        members = [KINDS[kind](address, group, topic, partitions) for _ in range(count)]
        for member in members:
            member.join()
        took = settle(members, partitions)
        if kill:
            gone = members[: max(1, count // 10)]
            members = members[len(gone) :]
            for member in gone:
                member.socket.close()
            took = settle(members, partitions)
        for member in members:
            member.socket.close()
        yield took


def main() -> None:
    """Run the rounds; the first is a warm-up."""
    bootstrap, topic, partitions, kind, count, number, *rest = sys.argv[1:]
    made = rounds(bootstrap, topic, int(partitions), kind, int(count), kill=rest == ["kill"])
    if not rest:
        next(made)
    print("start", flush=True)
    samples = [int(next(made) * 1e9) for _ in range(int(number))]
    print("end", flush=True)
    result(len(samples), 0, sum(samples) / 1e9, samples)


if __name__ == "__main__":
    main()
