"""Group members that speak the protocol themselves, many in one process: what is measured is the broker, not a client.

python -m bench.members HOST:PORT TOPIC PARTITIONS classic|consumer MEMBERS ROUNDS [kill]

All members of a new group join at once; the time is taken until every partition has one owner. With `kill` it is taken
from the moment a tenth of them goes without a word until the others own everything. Members heartbeat as clients do: at
once when something has changed, else at an interval. The output is that of `load.c`, a request being a round.
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
"""How soon a classic member hears of a rebalance; clients ask every 3 s by default."""

VERSIONS = {8: 8, 10: 4, 11: 9, 12: 4, 14: 5, 68: 1}
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
RETRY_S = 0.05


class Member:
    """One connection with one request on its way, or a time for the next."""

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
        """Send a request; its answer comes to `take`."""
        self.next_s = None
        self._api_key = request.api_key
        chunks = encode_request(request, VERSIONS[request.api_key], 1, "bench")
        self.socket.sendall(b"".join(chunk_bytes(chunk) for chunk in chunks))

    def pull(self) -> None:
        """Read what has come; a whole answer is taken."""
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
        """An answer has come: what to do next."""
        raise NotImplementedError

    def tick(self) -> None:
        """The time for the next request has come."""
        raise NotImplementedError


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat; the leader deals the partitions out in turn."""

    generation = -1
    session_ms = SESSION_MS

    def join(self) -> None:
        """JoinGroup, with the id that the broker has given out, if it has."""
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
    """Joins a group of its own, commits offset 5 of partition 0, and goes; its session lasts half an hour."""

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
    """ConsumerGroupHeartbeat (KIP-848): the broker assigns, the member follows at once and says so."""

    epoch = 0
    topic_id = bytes(16)

    def join(self) -> None:
        """The first heartbeat names the subscription and the member."""
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
        """Follow a new assignment at once."""
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
        """Heartbeat; after a change with what is owned now."""
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
    """Asks for the coordinator until there is one: Kafka makes its topic when it is first asked."""

    def join(self) -> None:
        """FindCoordinator."""
        self.ask(g.FindCoordinatorRequest(coordinator_keys=[self.group]))

    def take(self, answer: g.FindCoordinatorResponse) -> None:
        """There is one, or ask again."""
        if answer.coordinators[0].error_code:
            self.next_s = time.monotonic() + RETRY_S
        else:
            self.owned = frozenset({0})

    def tick(self) -> None:
        """Ask again."""
        self.join()


KINDS: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}


def settle(members: list[Member], partitions: int) -> float:
    """Let the members talk until every partition has one owner; seconds."""
    started = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.socket, selectors.EVENT_READ, member)
        while not _is_shared_out(members, partitions):
            now = time.monotonic()
            if now - started > PATIENCE_S:
                raise SystemExit(f"{len(members)} members have not shared {partitions} partitions out")
            for member in members:
                if member.next_s is not None and member.next_s <= now:
                    member.tick()
            soon = min((member.next_s for member in members if member.next_s is not None), default=now + 1)
            for key, _ in selector.select(max(0.0, soon - time.monotonic())):
                key.data.pull()
    return time.monotonic() - started


def _is_shared_out(members: list[Member], partitions: int) -> bool:
    """Each partition has one owner, and nobody more than a fair share: the first to come may have had all of them."""
    owners = Counter(index for member in members for index in member.owned)
    fair = -(-partitions // len(members))
    is_fair = all(len(member.owned) <= fair for member in members)
    return is_fair and len(owners) == partitions and set(owners.values()) == {1}


def rounds(bootstrap: str, topic: str, partitions: int, kind: str, count: int, *, kill: bool) -> Iterator[float]:
    """The seconds of one round after the other, each with a group of its own."""
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
    """Run the rounds, the first for warming up."""
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
