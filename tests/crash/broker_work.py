"""A whole broker on a recording disk: requests arrive, syncs run from time to time, responses are recorded.

While a sync runs, as in a thread, other requests are handled. Every response is added to the disk's history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from barnabas.storage import layout
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse, ProduceResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.schema import Message
from tests.crash.broker_promises import GROUP, Promises, read_all
from tests.support.disks.disk import RecordingDisk
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.produce import answers, produce, to

SETS = {"barnabas.log.sync": "always", "offsets.topic.num.partitions": "1"}
PARTITIONS = 2
Then = Callable[[Message], None]


def start(disk: RecordingDisk) -> MemoryBroker:
    """A broker on a disk."""
    return MemoryBroker(Path("/data"), SETS, files=disk)


class BrokerWork:
    """A broker and some clients, each with at most one request in flight."""

    def __init__(
        self,
        disk: RecordingDisk,
        random: Random,
        promises: Promises,
        count: int,
        start_on: Callable[[RecordingDisk], MemoryBroker] = start,
    ) -> None:
        self.disk = disk
        self.random = random
        self.promises = promises
        self.memory = start_on(disk)
        self.executors = (self.memory.flushes, self.memory.disk)
        for executor in self.executors:
            executor.is_paused = True
        self.creating: set[str] = set()
        self.has_group = False
        self.promise(lambda promises: setattr(promises, "cluster_id", self.memory.broker.cluster_id))
        self.waiting: dict[Client, Then | None] = {self.memory.client(): None for _ in range(4)}
        self.sequences: dict[tuple[bytes, int], tuple[int, int]] = {}  # by partition: producer id and next sequence
        self.count = count  # number of the next record or offset, ascending
        self.actions: list[tuple[int, Callable[[Client], None]]] = [
            (12, self.produce),
            (3, self.read),
            (2, self.delete_records),
            (2, self.commit),
            (1, self.create_topic),
            (1, self.delete_topic),
        ]

    def promise(self, change: Callable[[Promises], None]) -> None:
        """Record a promise in the history, and apply it to the promises."""
        self.disk.note(change)
        change(self.promises)

    def run(self, steps: int) -> None:
        """Do a number of random actions."""
        self.create_topic(next(iter(self.waiting)))
        for _ in range(steps):
            self.step()
            if self.is_waiting_for_disk and self.random.random() < 0.5:
                self.sync()
            if self.random.random() < 0.1:
                self.work_in_background()
        while self.is_waiting_for_disk:
            self.sync()

    @property
    def is_waiting_for_disk(self) -> bool:
        """Whether any work waits for the disk."""
        return any(executor.held for executor in self.executors)

    def step(self, action: Callable[[Client], None] | None = None) -> None:
        """A client without a request in flight sends the next one, random or the given one."""
        idle = [client for client, then in self.waiting.items() if then is None]
        if idle:
            weights = [weight for weight, _ in self.actions]
            (chosen,) = self.random.choices([action for _, action in self.actions], weights)
            (action or chosen)(self.random.choice(idle))
            self.process_responses()

    def sync(self) -> None:
        """Run work that waits for the disk; between files the rest of the broker may act."""
        executor = self.random.choice([candidate for candidate in self.executors if candidate.held])
        executor.run(self.meanwhile)
        self.memory.broker.loop.end_turn()
        self.process_responses()

    def meanwhile(self, work: Callable[[], None], action: Callable[[Client], None] | None = None) -> None:
        """Run a function that belongs in a thread, while the event loop handles a request or two."""

        def hook() -> None:
            if self.random.random() < 0.2:
                self.disk.during_sync = None
                self.step(action)
                self.disk.during_sync = hook

        self.disk.during_sync = hook
        try:
            work()
        finally:
            self.disk.during_sync = None

    def process_responses(self) -> None:
        """Process the responses that have arrived."""
        for client, then in list(self.waiting.items()):
            if then is not None:
                for response in client.answers():
                    self.waiting[client] = None
                    then(response)

    def request(self, client: Client, request: Message, version: int, then: Then) -> None:
        """Send a request; `then` is called with its response."""
        self.waiting[client] = then
        client.send(request, version)

    # --- requests

    def topic(self) -> tuple[str, bytes] | None:
        """A random existing topic."""
        return self.random.choice(list(self.promises.topics.items())) if self.promises.topics else None

    def create_topic(self, client: Client) -> None:
        name = self.random.choice("abc")
        if name in self.memory.broker.image.topics or name in self.creating:
            return
        self.creating.add(name)
        topics = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)]

        def then(response: Message) -> None:
            assert isinstance(response, CreateTopicsResponse)
            assert response.topics[0].error_code == 0, response
            self.creating.remove(name)
            topic_id = response.topics[0].topic_id
            self.promise(lambda promises: promises.made(name, topic_id, PARTITIONS))
            for partition in self.memory.broker.partitions.of_topic(name):
                partition.log.config.segment_bytes = 1500  # less than the protocol allows: segments roll at once
                partition.log.config.index_interval_bytes = 100

        self.request(client, CreateTopicsRequest(topics=topics), 7, then)

    def delete_topic(self, client: Client) -> None:
        chosen = self.topic()
        if chosen is None or len(self.promises.topics) < 2:
            return
        name, topic_id = chosen
        self.promise(lambda promises: promises.topics.pop(name, None))

        def then(response: Message) -> None:
            assert isinstance(response, DeleteTopicsResponse)
            self.promise(lambda promises: promises.deleted.add(topic_id))

        self.request(client, DeleteTopicsRequest(topic_names=[name]), 5, then)

    def produce(self, client: Client) -> None:
        chosen = self.topic()
        if chosen is None:
            return
        topic, topic_id = chosen
        place = topic_id, self.random.randrange(PARTITIONS)
        if self.promises.records[place].in_flight:
            return  # the producer keeps waiting
        if place not in self.sequences:
            self.init_producer(client, place)
            return
        producer_id, sequence = self.sequences[place]
        self.sequences[place] = producer_id, sequence + 1
        self.count += 1
        value = b"%d " % self.count + self.random.randbytes(self.random.choice((10, 200, 700)))
        sent = batch(value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        self.promise(lambda promises: promises.sending(place, value, sent))

        def then(response: Message) -> None:
            assert isinstance(response, ProduceResponse)
            (answered,) = answers(response)
            if topic_id in self.promises.topics.values():
                assert answered.error_code == 0, answered
                self.promise(lambda promises: promises.acknowledge(place, value, answered.base_offset))

        self.request(client, produce(to(place[1], sent), topic=topic), 9, then)

    def init_producer(self, client: Client, place: tuple[bytes, int]) -> None:
        """Get a producer id for a partition."""

        def then(response: Message) -> None:
            assert isinstance(response, InitProducerIdResponse)
            assert response.error_code == 0, response
            self.promise(lambda promises: promises.producer_ids.add(response.producer_id))
            self.sequences.setdefault(place, (response.producer_id, 0))

        self.request(client, InitProducerIdRequest(transactional_id=None), 4, then)

    def read(self, client: Client) -> None:
        chosen = self.topic()
        if chosen is None:
            return
        topic, topic_id = chosen
        partition = self.random.randrange(PARTITIONS)
        with self.reads_wait_for_nothing():
            _, records = read_all(client, topic, partition)
        self.promise(lambda promises: promises.records[topic_id, partition].seen.update(records))

    @contextmanager
    def reads_wait_for_nothing(self) -> Iterator[None]:
        """Run at once what a read waits for; what was kept before stays kept."""
        saved = [executor.held for executor in self.executors]
        for executor in self.executors:
            executor.held, executor.is_paused = [], False
        yield
        for executor, held in zip(self.executors, saved, strict=True):
            executor.held, executor.is_paused = held, True

    def delete_records(self, client: Client) -> None:
        chosen = self.topic()
        if chosen is None:
            return
        topic, topic_id = chosen
        place = topic_id, self.random.randrange(PARTITIONS)
        promised = self.promises.records[place]
        high_watermark = self.memory.broker.partitions.get(topic, place[1]).log.high_watermark
        offset = self.random.randint(promised.start_asked, max(promised.start_asked, high_watermark))
        self.promise(lambda promises: setattr(promises.records[place], "start_asked", offset))
        partitions = [DeleteRecordsPartition(partition_index=place[1], offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=1000)

        def then(response: Message) -> None:
            assert isinstance(response, DeleteRecordsResponse)
            result = response.topics[0].partitions[0]
            assert (result.error_code, result.low_watermark) == (0, offset), response
            self.promise(lambda promises: setattr(promises.records[place], "start", offset))

        self.request(client, request, 2, then)

    def commit(self, client: Client) -> None:
        chosen = self.topic()
        if chosen is None:
            return
        topic, topic_id = chosen
        if not self.has_group:
            self.find_group(client)
            return
        self.count += 1
        offset = self.count
        self.promise(lambda promises: promises.asked_to_commit.setdefault(topic_id, set()).add(offset))
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=GROUP, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])]
        )

        def then(response: Message) -> None:
            assert isinstance(response, OffsetCommitResponse)
            if response.topics[0].partitions[0].error_code == 0:
                self.promise(lambda promises: promises.has_committed(topic_id, offset))

        self.request(client, request, 9, then)

    def find_group(self, client: Client) -> None:
        """Find the coordinator of the group, whose topic the first request creates."""

        def then(response: Message) -> None:
            assert isinstance(response, FindCoordinatorResponse)
            self.has_group = not response.coordinators[0].error_code

        self.request(client, FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4, then)

    # --- background jobs

    def work_in_background(self) -> None:
        """Checkpoints, syncs of closed segments, removal of deleted files."""
        broker = self.memory.broker
        dirs = broker.log_dirs
        choice = self.random.randrange(3)
        if choice == 0:
            for log in dirs.logs_with_rolled_segments():
                job = log.start_flush(log.segments.active.base_offset)
                if job is not None:
                    self.meanwhile(job.sync_files)
                    job.sync_directories()  # without a break in between: the broker detects a deletion meanwhile
                    if job.missing is None:
                        log.finish_flush(job)
        elif choice == 1:
            names = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)
            for _, write in dirs.plan_checkpoint(self.random.choice(names)):
                self.meanwhile(write, self.produce)  # other requests might wait for the lock of the checkpoints
        else:
            self.memory.clock.advance(30.0)
            for path in dirs.deletions.take_due(broker.loop.now()):
                dirs.deletions.remove(path)
