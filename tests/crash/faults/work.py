"""Clients that work with a broker on a faulty disk: each repeats a refused request a few times, then gives up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse, ProduceResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.messages.transactions import EndTxnRequest, EndTxnResponse
from tests.crash.faults.facts import Facts, Place, Sent, Transaction, read_once
from tests.crash.faults.session import Session
from tests.crash.faults.sharing import ShareMember
from tests.support.disks.broken import require
from tests.support.requests.produce import produce, to

RETRIED = frozenset(
    {
        E.KAFKA_STORAGE_ERROR,
        E.NOT_COORDINATOR,
        E.COORDINATOR_NOT_AVAILABLE,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.CONCURRENT_TRANSACTIONS,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REQUEST_TIMED_OUT,
    }
)
SEGMENT_BYTES = 600


@dataclass
class Producer:
    """The client side of an idempotent or transactional producer."""

    producer_id: int
    epoch: int
    sequences: dict[Place, int]


class Work:
    """The clients of a session."""

    def __init__(self, session: Session, facts: Facts, attempts: int, first: int = 0) -> None:
        """`attempts`: how often a request is sent before its client gives up; `first`: the number of its records."""
        self.session = session
        self.facts = facts
        self.attempts = attempts
        self._count = first
        self._producers: dict[str, Producer] = {}
        self.codec = 0
        """The compression of the next batches."""
        self._member = ShareMember(session, f"member-{first}")

    def _attempt(self, send: Callable[[], int | None]) -> bool:
        """Call `send` until it returns no error; None stands for no answer. Whether it has succeeded."""
        for _ in range(self.attempts):
            code = send()
            if code == 0:
                return True
            require(code is None or code in RETRIED, f"a request is answered {code and E(code)!r}")
            self.session.wait(1.1)
        return False

    def value(self) -> bytes:
        """A value that is sent once."""
        self._count += 1
        return b"%d " % self._count + bytes(60)

    # --- topics

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bool:
        """Create a topic, with segments of a few batches."""
        created = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=created)
        self.facts.unsure_topics.add(name)

        def send() -> int | None:
            response = self.session.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
            if response is None:
                return None
            code: int = response.topics[0].error_code
            return 0 if code == E.TOPIC_ALREADY_EXISTS else code

        if not self._attempt(send):
            return False
        self.facts.unsure_topics.discard(name)
        self.facts.topics[name] = partitions
        if "compact" in configs.get("cleanup_policy", ""):
            self.facts.compacted.add(name)
        self.shrink_segments()
        return True

    def shrink_segments(self) -> None:
        """Make segments small: the protocol allows no less than 1 MiB."""
        for name in self.facts.topics:
            for partition in self.session.memory.broker.partitions.of_topic(name):
                partition.log.config.segment_bytes = SEGMENT_BYTES
                partition.log.config.index_interval_bytes = 100

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.facts.unsure_topics.add(name)

        def send() -> int | None:
            response = self.session.ask(DeleteTopicsRequest(topic_names=[name]), 5, DeleteTopicsResponse)
            if response is None:
                return None
            code: int = response.responses[0].error_code
            return 0 if code == E.UNKNOWN_TOPIC_OR_PARTITION else code

        if self._attempt(send):
            self.facts.topics.pop(name, None)
            self.facts.unsure_topics.discard(name)
            require(name not in self.session.memory.broker.image.topics, f"the deleted {name} is in the metadata")

    def set_config(self, topic: str, value: str) -> None:
        """Set max.message.bytes of a topic."""
        allowed = self.facts.configs.setdefault(topic, {"1048588"})
        allowed.add(value)
        changed = IncrementalAlterConfigsRequestAlterableConfig(
            name="max.message.bytes", config_operation=0, value=value
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=2, resource_name=topic, configs=[changed]
        )

        def send() -> int | None:
            response = self.session.ask(
                IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse
            )
            return None if response is None else response.responses[0].error_code

        if self._attempt(send):
            self.facts.configs[topic] = {value}
        self.shrink_segments()

    # --- records

    def _batch(self, record: Sent, producer: Producer | None, place: Place, *, transactional: bool) -> bytes:
        options = {}
        if producer is not None:
            sequence = producer.sequences.get(place, 0)
            producer.sequences[place] = sequence + 1
            options = {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                "base_sequence": sequence,
                "transactional": transactional,
            }
        builder = BatchBuilder(codec=self.codec, **options)  # type: ignore[arg-type]
        builder.append(self.session.memory.clock.now_ms, record.key, record.value)
        return builder.build()

    def _produce(self, place: Place, record: Sent, batch: bytes, transactional_id: str | None = None) -> bool:
        def send() -> int | None:
            request = produce(to(place[1], batch), topic=place[0], transactional_id=transactional_id)
            response = self.session.ask(request, 12, ProduceResponse)
            if response is None:
                return None
            partition = response.responses[0].partition_responses[0]
            if not partition.error_code:
                record.offset = partition.base_offset
            return int(partition.error_code)

        return self._attempt(send)

    def produce(self, topic: str, partition: int = 0, key: bytes | None = None) -> bool:
        """Produce one record with an idempotent producer, which is replaced when it has given up."""
        place = topic, partition
        name = f"{topic}-{partition}"
        producer = self._producers.get(name) or self._init(name, None)
        if producer is None:
            return False
        record = Sent(self.value(), key)
        self.facts.sent.setdefault(place, []).append(record)
        if self._produce(place, record, self._batch(record, producer, place, transactional=False)):
            return True
        del self._producers[name]
        return False

    def _init(self, name: str, transactional_id: str | None) -> Producer | None:
        def send() -> int | None:
            if transactional_id is not None and (code := self._find(transactional_id, 1)) != 0:
                return code
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=10_000)
            response = self.session.ask(request, 5, InitProducerIdResponse)
            if response is None:
                return None
            if not response.error_code:
                self._producers[name] = Producer(response.producer_id, response.producer_epoch, {})
            return int(response.error_code)

        return self._producers[name] if self._attempt(send) else None

    def _find(self, key: str, key_type: int) -> int | None:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        response = self.session.ask(request, 6, FindCoordinatorResponse)
        return None if response is None else int(response.coordinators[0].error_code)

    def transaction(self, transactional_id: str, places: list[Place], *, commit: bool) -> None:
        """Produce to each place in a transaction, and end it: committed only if everything was written."""
        producer = self._producers.get(transactional_id) or self._init(transactional_id, transactional_id)
        if producer is None:
            return
        transaction = Transaction()
        self.facts.transactions.append(transaction)
        for place in places:
            record = Sent(self.value())
            transaction.sent.append((place, record))
            self.facts.sent.setdefault(place, []).append(record)
            batch = self._batch(record, producer, place, transactional=True)
            commit = self._produce(place, record, batch, transactional_id) and commit
        transaction.commit = commit

        def end() -> int | None:
            request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                committed=commit,
            )
            response = self.session.ask(request, 5, EndTxnResponse)
            if response is None:
                return None
            if not response.error_code:
                producer.producer_id, producer.epoch = response.producer_id, response.producer_epoch
            return int(response.error_code)

        transaction.is_ended = self._attempt(end)
        producer.sequences.clear()
        if not transaction.is_ended:
            del self._producers[transactional_id]

    def read(self, topic: str, partition: int = 0, isolation: int = 1) -> None:
        """Fetch from the log start."""
        fetched = read_once(
            self.session, (topic, partition), self.facts.starts_asked.get((topic, partition), 0), isolation
        )
        if fetched is not None and topic not in self.facts.expires:
            sent = {record.value for record in self.facts.sent.get((topic, partition), [])}
            require(bool(fetched.records) == bool(sent) or isolation == 1, "a fetch finds nothing")

    def look_up(self, topic: str) -> None:
        """ListOffsets by the timestamp of now: records are searched."""
        timestamp = self.session.memory.clock.now_ms - 1000
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
        response = self.session.ask(request, 7, ListOffsetsResponse)
        code = 0 if response is None else response.topics[0].partitions[0].error_code
        require(code in (0, *RETRIED), f"ListOffsets is answered {code}")

    def delete_records(self, topic: str, offset: int) -> None:
        """DeleteRecords below an offset."""
        place = topic, 0
        self.facts.starts_asked[place] = offset
        topics = [DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])]

        def send() -> int | None:
            response = self.session.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2, DeleteRecordsResponse)
            return None if response is None else int(response.topics[0].partitions[0].error_code)

        if self._attempt(send):
            self.facts.starts[place] = offset

    # --- groups

    def join_share_group(self) -> None:
        """Initialize the state of the share group."""
        if self._attempt(self._member.initialize):
            self.facts.accept_asked = set()

    def consume_share(self) -> None:
        """Fetch and accept everything that is available."""
        assert self.facts.accept_asked is not None
        member = self._member
        acquired: list[tuple[int, int]] = []

        def take() -> int | None:
            code, ranges = member.take()
            acquired.extend(ranges)
            return code

        self._attempt(take)
        for first, last in acquired:
            offsets = set(range(first, last + 1))
            self.facts.accept_asked |= offsets
            if member.accept(first, last) == 0:
                self.facts.accepted |= offsets

    def commit_offset(self, group: str, offset: int) -> None:
        """Commit an offset of a-0."""
        allowed = self.facts.offsets.setdefault(group, {-1})
        allowed.add(offset)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name="a", partitions=[partition])]
        )

        def send() -> int | None:
            code = self._find(group, 0)
            if code != 0:
                return code
            response = self.session.ask(request, 9, OffsetCommitResponse)
            return None if response is None else int(response.topics[0].partitions[0].error_code)

        if self._attempt(send):
            self.facts.offsets[group] = {offset}
