"""The answers of a broker, and what it must answer after a crash (R12, R13, R15, R22, L3, L5, I1, G2).

All checks use the protocol, as a client does. With `barnabas.log.sync=always` every record that was acknowledged or
read is at its offset after any crash; no record is there twice, and none that was not sent.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import ProduceResponse
from tests.support.disks.broken import require
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.fetch import at, fetch, values
from tests.support.requests.groups import fetch as fetch_committed
from tests.support.requests.groups import find
from tests.support.requests.produce import answers, init, produce, to

GROUP = "g"
Place = tuple[bytes, int]
"""Topic id and partition."""


@dataclass
class RecordPromises:
    """The promises for one partition."""

    sent: list[bytes] = field(default_factory=list)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    seen: dict[int, bytes] = field(default_factory=dict)
    start: int = 0
    start_asked: int = 0
    in_flight: dict[bytes, bytes] = field(default_factory=dict)
    """The batches that an idempotent producer has sent last and not heard of, by value."""


@dataclass
class Promises:
    """Everything that a broker has reported to its clients."""

    cluster_id: str = ""
    topics: dict[str, bytes] = field(default_factory=dict)
    """Created, and not requested to be deleted."""
    deleted: set[bytes] = field(default_factory=set)
    records: dict[Place, RecordPromises] = field(default_factory=dict)
    committed: dict[bytes, int] = field(default_factory=dict)
    """The offset of the group in partition 0 of a topic, by its id."""
    asked_to_commit: dict[bytes, set[int]] = field(default_factory=dict)
    producer_ids: set[int] = field(default_factory=set)

    def made(self, name: str, topic_id: bytes, partitions: int) -> None:
        """A topic was created."""
        self.topics[name] = topic_id
        for partition in range(partitions):
            self.records[topic_id, partition] = RecordPromises()

    def sending(self, place: Place, value: bytes, sent: bytes) -> None:
        """A producer sends a batch."""
        self.records[place].sent.append(value)
        self.records[place].in_flight[value] = sent

    def acknowledge(self, place: Place, value: bytes, offset: int) -> None:
        """A producer has received the offset of its record."""
        self.records[place].acknowledged[value] = offset
        del self.records[place].in_flight[value]

    def has_committed(self, topic_id: bytes, offset: int) -> None:
        """A group's commit was acknowledged; its offsets ascend, so an earlier one must not reappear."""
        self.committed[topic_id] = max(offset, self.committed.get(topic_id, 0))
        self.asked_to_commit[topic_id] = {
            requested for requested in self.asked_to_commit[topic_id] if requested > offset
        }

    def copy(self) -> Promises:
        """A copy, independent of later changes."""
        return deepcopy(self)


def check_broker(memory: MemoryBroker, promises: Promises) -> None:
    """Check a broker that has just started against the promises."""
    client = memory.client()
    image = memory.broker.image
    require(promises.cluster_id in ("", memory.broker.cluster_id), "the cluster id has changed")
    ids = {name: topic.topic_id for name, topic in image.topics.items()}
    for name, topic_id in promises.topics.items():
        require(ids.get(name) == topic_id, f"topic {name} is missing, or another one")
        for (of, partition), records in promises.records.items():
            if of == topic_id:
                _check_records(client, name, partition, records)
    require(not promises.deleted & set(ids.values()), "a deleted topic is there again")
    require(init(client).producer_id not in promises.producer_ids, "a producer id was given twice")
    _check_committed(client, promises)


def read_all(client: Client, topic: str, partition: int) -> tuple[int, dict[int, bytes]]:
    """(log start, records by offset) as read by a consumer from the beginning."""
    start = offset = _earliest(client, topic, partition)
    records: dict[int, bytes] = {}
    while True:
        fetched = _fetch(client, topic, partition, offset)
        require(fetched.error_code == 0, f"fetch of {topic}-{partition} at {offset}: error {fetched.error_code}")
        pairs = values(fetched)
        if not pairs:
            require(offset == fetched.high_watermark, f"nothing is read at {offset} below {fetched.high_watermark}")
            return start, records
        records |= {at_: value for at_, value in pairs if value is not None and at_ >= offset}
        offset = pairs[-1][0] + 1


def _earliest(client: Client, topic: str, partition: int) -> int:
    requested = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-2)])
    response = client.ask(ListOffsetsRequest(replica_id=-1, topics=[requested]), 7, ListOffsetsResponse)
    result = response.topics[0].partitions[0]
    require(result.error_code == 0, f"ListOffsets of {topic}-{partition}: error {result.error_code}")
    return result.offset


def _fetch(client: Client, topic: str, partition: int, offset: int):
    request = fetch(at(offset, partition, 2000), topic=topic)
    return client.ask(request, 12, FetchResponse).responses[0].partitions[0]


def _check_records(client: Client, topic: str, partition: int, promised: RecordPromises) -> None:
    start, records = read_all(client, topic, partition)
    require(promised.start <= start <= promised.start_asked, f"{topic}-{partition} starts at {start}: {promised}")
    offsets = {value: offset for offset, value in records.items()}
    require(len(offsets) == len(records), f"a record of {topic}-{partition} is there twice: {records}")
    require(offsets.keys() <= set(promised.sent), f"{topic}-{partition} has records that were not sent")
    for value, offset in promised.acknowledged.items():
        require(offset < start or offsets.get(value) == offset, f"{value!r} of {topic}-{partition} is not at {offset}")
    for offset, value in promised.seen.items():
        require(
            offset < start or records.get(offset) == value, f"{value!r} was read at {offset} of {topic}-{partition}"
        )
    for value, sent in promised.in_flight.items():
        _check_repeat(client, topic, partition, value, sent, offsets)


def _check_repeat(
    client: Client, topic: str, partition: int, value: bytes, sent: bytes, offsets: dict[bytes, int]
) -> None:
    """An idempotent producer repeats a batch that was not answered: it is in the log once (I1)."""
    (response,) = answers(client.ask(produce(to(partition, sent), topic=topic), 9, ProduceResponse))
    require(response.error_code == 0, f"{value!r} sent again to {topic}-{partition}: error {response.error_code}")
    _, records = read_all(client, topic, partition)
    places = [offset for offset, stored in records.items() if stored == value]
    if value in offsets:
        require(places == [offsets[value]], f"{value!r} of {topic}-{partition} is at {places} after a repeat")
        require(response.base_offset == offsets[value], f"the repeat of {value!r} is answered {response.base_offset}")
    else:
        require(places == [response.base_offset], f"{value!r} of {topic}-{partition} is at {places} after a repeat")


def _check_committed(client: Client, promises: Promises) -> None:
    if not promises.committed:
        return
    find(client, GROUP)
    for topic, topic_id in promises.topics.items():
        if topic_id in promises.committed:
            committed = fetch_committed(client, topic, GROUP)
            allowed = {promises.committed[topic_id], *promises.asked_to_commit.get(topic_id, ())}
            require(committed in allowed, f"the group's offset of {topic} is {committed}, not one of {allowed}")
