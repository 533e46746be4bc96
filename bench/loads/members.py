"""Group members that implement the protocol, many in one process, so that no client library is measured.

python -m bench.loads.members HOST:PORT TOPIC PARTITIONS classic|consumer MEMBERS ROUNDS [kill]

All members of a new group join at the same time. A round ends when every partition has one owner; with `kill`, a tenth
of the members then disconnects, and the time until the others own all partitions is measured. Members send a heartbeat
immediately after a change, otherwise at an interval. Prints the same lines as `load.c`, with rounds as requests.
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
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import consumer_groups as c
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from bench.loads.confluent_load import TIMEOUT_S, result

SESSION_MS = 2_000
LONG_SESSION_MS = 1_800_000
REBALANCE_MS = 60_000
CLASSIC_HEARTBEAT_S = 0.5
"""The heartbeat interval of classic members, by which they learn of a rebalance; clients' default is 3 s."""

VERSIONS = {8: 8, 10: 4, 11: 9, 12: 4, 14: 5, 68: 1}
RETRIABLE = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
RETRY_S = 0.05


class Member:
    """A member with its connection: either one request is in flight, or `next_s` is the time of the next."""

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

    def send(self, request: Message) -> None:
        """Send a request; `handle` is called with the response."""
        self.next_s = None
        self._api_key = request.api_key
        chunks = encode_request(request, VERSIONS[request.api_key], 1, "bench")
        self.socket.sendall(b"".join(chunk_bytes(chunk) for chunk in chunks))

    def receive(self) -> None:
        """Read from the socket; handle the response if it is complete."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemExit("the broker closed the connection of a member")
        self._received += data
        if len(self._received) < 4 or len(self._received) < 4 + int.from_bytes(self._received[:4], "big"):
            return
        frame, self._received = bytes(self._received[4:]), bytearray()
        version = VERSIONS[self._api_key]
        _, position = parse_response_header(frame, self._api_key, version)
        self.handle(message_for(self._api_key)[1].decode(frame[position:], version))

    def join(self) -> None:
        """Send the first request."""
        raise NotImplementedError

    def handle(self, response: Any) -> None:
        """Process a response and send or schedule the next request."""
        raise NotImplementedError

    def on_timer(self) -> None:
        """Send the scheduled request."""
        raise NotImplementedError


class ClassicMember(Member):
    """Classic protocol: JoinGroup, SyncGroup, Heartbeat. The leader assigns partitions round-robin."""

    generation = -1
    session_ms = SESSION_MS

    def join(self) -> None:
        """Send JoinGroup, with the member id if the broker has assigned one."""
        self.owned = frozenset()
        metadata = b"\0\1" + ConsumerProtocolSubscription(topics=[self.topic]).encode(1)
        self.send(
            g.JoinGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=[g.JoinGroupRequestProtocol(name="bench", metadata=metadata)],
            )
        )

    def handle(self, response: Any) -> None:
        """Join, sync, then heartbeat until the next rebalance."""
        code = response.error_code
        if isinstance(response, g.JoinGroupResponse) and code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = response.member_id
            if code:
                self.join()
            else:
                self._sync(response)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif code in RETRIABLE and self.generation < 0:
            self.next_s = time.monotonic() + RETRY_S
        elif code:
            raise SystemExit(f"a member received {ErrorCode(code).name}")
        else:
            if isinstance(response, g.SyncGroupResponse):
                self.owned = frozenset(memoryview(response.assignment).cast("H"))
            self.next_s = time.monotonic() + CLASSIC_HEARTBEAT_S

    def _sync(self, joined: g.JoinGroupResponse) -> None:
        self.generation = joined.generation_id
        ids = [member.member_id for member in joined.members]
        assigned = [
            memoryview(bytearray(2 * len(range(n, self.partitions, len(ids))))).cast("H") for n in range(len(ids))
        ]
        for partition in range(self.partitions if ids else 0):
            assigned[partition % len(ids)][partition // len(ids)] = partition
        self.send(
            g.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="bench",
                assignments=[
                    g.SyncGroupRequestAssignment(member_id=member_id, assignment=part.tobytes())
                    for member_id, part in zip(ids, assigned, strict=True)
                ],
            )
        )

    def on_timer(self) -> None:
        """Send a heartbeat."""
        if self.generation < 0:
            self.join()
            return
        self.send(g.HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id))


class CommittingMember(ClassicMember):
    """Joins its own group and commits offset 5 of partition 0; the session timeout is half an hour."""

    session_ms = LONG_SESSION_MS
    number = 0

    def handle(self, response: Any) -> None:
        """Join, sync, then commit."""
        if isinstance(response, g.SyncGroupResponse) and not response.error_code:
            partition = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
            self.send(
                o.OffsetCommitRequest(
                    group_id=self.group,
                    generation_id_or_member_epoch=self.generation,
                    member_id=self.member_id,
                    topics=[o.OffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
                )
            )
        elif isinstance(response, o.OffsetCommitResponse):
            (code,) = {partition.error_code for topic in response.topics for partition in topic.partitions}
            if code:
                raise SystemExit(f"a commit received {ErrorCode(code).name}")
            self.owned = frozenset({self.number})
        else:
            super().handle(response)


class ConsumerMember(Member):
    """Consumer protocol (KIP-848): adopts an assignment and acknowledges it immediately with ConsumerGroupHeartbeat."""

    epoch = 0
    topic_id = bytes(16)

    def join(self) -> None:
        """Send the first heartbeat, with member id and subscription."""
        self.member_id = str(uuid.uuid4())
        self.send(
            c.ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=0,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[self.topic],
                topic_partitions=[],
            )
        )

    def handle(self, response: c.ConsumerGroupHeartbeatResponse) -> None:
        """Adopt a new assignment and acknowledge it."""
        if response.error_code in RETRIABLE and not self.epoch:
            self.next_s = time.monotonic() + RETRY_S
            return
        if response.error_code:
            raise SystemExit(f"a member received {ErrorCode(response.error_code).name}: {response.error_message}")
        self.epoch = response.member_epoch
        if response.assignment is None:
            self.next_s = time.monotonic() + response.heartbeat_interval_ms / 1000
            return
        owned = frozenset(index for topic in response.assignment.topic_partitions for index in topic.partitions)
        for topic in response.assignment.topic_partitions:
            self.topic_id = topic.topic_id
        if owned == self.owned:
            self.next_s = time.monotonic() + response.heartbeat_interval_ms / 1000
            return
        self.owned = owned
        self.on_timer(changed=True)

    def on_timer(self, *, changed: bool = False) -> None:
        """Send a heartbeat; with the owned partitions if they have changed."""
        if not self.epoch:
            self.join()
            return
        part = c.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self.topic_id, partitions=sorted(self.owned))
        self.send(
            c.ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                topic_partitions=([part] if self.owned else []) if changed else None,
            )
        )


class CoordinatorFinder(Member):
    """Sends FindCoordinator until it succeeds: Kafka creates __consumer_offsets at the first request."""

    def join(self) -> None:
        """Send FindCoordinator."""
        self.send(g.FindCoordinatorRequest(coordinator_keys=[self.group]))

    def handle(self, response: g.FindCoordinatorResponse) -> None:
        """Finish, or retry later."""
        if response.coordinators[0].error_code:
            self.next_s = time.monotonic() + RETRY_S
        else:
            self.owned = frozenset({0})

    def on_timer(self) -> None:
        """Retry."""
        self.join()


KINDS: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}


def run_until_assigned(members: list[Member], partitions: int) -> float:
    """Run the members until every partition has one owner; returns the seconds."""
    started = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.socket, selectors.EVENT_READ, member)
        while not _is_balanced(members, partitions):
            now = time.monotonic()
            if now - started > TIMEOUT_S:
                raise SystemExit(
                    f"{partitions} partitions were not assigned to {len(members)} members in {TIMEOUT_S:.0f} s"
                )
            for member in members:
                if member.next_s is not None and member.next_s <= now:
                    member.on_timer()
            next_s = min((member.next_s for member in members if member.next_s is not None), default=now + 1)
            for key, _ in selector.select(max(0.0, next_s - time.monotonic())):
                key.data.receive()
    return time.monotonic() - started


def _is_balanced(members: list[Member], partitions: int) -> bool:
    """Whether each partition has one owner, and no member more than its share (the first member may have owned all)."""
    owners = Counter(index for member in members for index in member.owned)
    fair = -(-partitions // len(members))
    is_fair = all(len(member.owned) <= fair for member in members)
    return is_fair and len(owners) == partitions and set(owners.values()) == {1}


def rounds(bootstrap: str, topic: str, partitions: int, kind: str, count: int, *, kill: bool) -> Iterator[float]:
    """Yield the seconds of each round; every round has a new group."""
    host, port = bootstrap.split(":")
    address = (host, int(port))
    while True:
        group = f"bench-{uuid.uuid4()}"
        finder = CoordinatorFinder(address, group, topic, 1)
        finder.join()
        run_until_assigned([finder], 1)
        finder.socket.close()
        members = [KINDS[kind](address, group, topic, partitions) for _ in range(count)]
        for member in members:
            member.join()
        took = run_until_assigned(members, partitions)
        if kill:
            killed = members[: max(1, count // 10)]
            members = members[len(killed) :]
            for member in killed:
                member.socket.close()
            took = run_until_assigned(members, partitions)
        for member in members:
            member.socket.close()
        yield took


def main() -> None:
    """Run the rounds, after one to warm up."""
    bootstrap, topic, partitions, kind, count, number, *rest = sys.argv[1:]
    durations = rounds(bootstrap, topic, int(partitions), kind, int(count), kill=rest == ["kill"])
    if not rest:
        next(durations)
    print("start", flush=True)
    samples = [int(next(durations) * 1e9) for _ in range(int(number))]
    print("end", flush=True)
    result(len(samples), 0, sum(samples) / 1e9, samples)


if __name__ == "__main__":
    main()
