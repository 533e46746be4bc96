"""A broker in this process that leads partitions with followers: tests are the followers and the controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.broker.replicas.partition import Partition
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.cluster.topic_image import UNASSIGNED_DIRECTORY
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.messages.records.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from barnabas.wire.schema import Message
from tests.support.memory.broker import Client, MemoryBroker, batch

LAG_S = 30.0
ME, SECOND, THIRD = 1, 2, 3
EPOCHS = {SECOND: 1002, THIRD: 1003}
"""The broker epochs of the other brokers."""


class FakeChannel:
    """The controller's side: keeps each request until the test answers it."""

    def __init__(self) -> None:
        self.held: list[tuple[Message, Callable[[Any], None]]] = []

    def send(self, request: Message, then: Callable[[Any], None], *, timeout_s: float | None = None) -> None:
        self.held.append((request, then))

    def close(self) -> None:
        """Nothing is open."""


class ReplicatedBroker(MemoryBroker):
    """Broker 1 of three; its topic `t` has one partition with replicas 1, 2 and 3, which it leads."""

    def __init__(self, data_dir: Path, sets: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(data_dir, {"node.id": "1", **(sets or {})}, "kafka", **options)
        self.channel = FakeChannel()
        self.broker.controller_channel = self.channel
        for broker_id, epoch in EPOCHS.items():
            endpoint = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9091 + broker_id)
            self.apply(
                RegisterBrokerRecord(
                    broker_id=broker_id,
                    broker_epoch=epoch,
                    end_points=[endpoint],
                    fenced=False,
                    rack=f"r{broker_id}",
                )
            )

    def apply(self, *records: Message) -> None:
        """The metadata says this, and everything of it is in effect."""
        delta = ClusterDelta()
        for record in records:
            replay_record(self.broker.image, record, delta)
        run_in_place(self.broker.partitions.apply(self.broker.image, delta))
        self.broker.loop.end_turn()

    def lead(self, *isr: int, topic: str = "t", replicas: tuple[int, ...] = (ME, SECOND, THIRD)) -> Partition:
        """Make a topic that this broker leads with these replicas, all in sync if `isr` is empty."""
        self.create_topic(topic)
        self.change(topic, replicas=list(replicas), isr=list(isr or replicas), leader=ME)
        return self.broker.partitions.get(topic, 0)

    def change(self, topic: str = "t", **fields: Any) -> None:
        """The metadata of the topic's partition changes; the controller knows no directory of new replicas."""
        topic_id = self.broker.image.topics[topic].topic_id
        if "replicas" in fields:
            fields.setdefault("directories", [UNASSIGNED_DIRECTORY] * len(fields["replicas"]))
        self.apply(PartitionChangeRecord(topic_id=topic_id, partition_id=0, **fields))

    def fence(self, broker_id: int, *, fenced: bool = True) -> None:
        """A broker is fenced, or unfenced."""
        self.apply(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=EPOCHS[broker_id], fenced=1 if fenced else -1
            )
        )

    # -- the controller

    def proposed(self) -> AlterPartitionRequestPartitionData:
        """The only partition of the only request that waits for the controller."""
        ((request, _),) = self.channel.held
        assert isinstance(request, AlterPartitionRequest)
        ((partition,),) = [topic.partitions for topic in request.topics]
        return partition

    def answer(self, error: ErrorCode = ErrorCode.NONE, *, leader_epoch: int | None = None) -> None:
        """The controller accepts the proposal or refuses it; the metadata does not show it yet."""
        ((request, then),) = self.channel.held
        self.channel.held.clear()
        assert isinstance(request, AlterPartitionRequest)
        topics = [
            AlterPartitionResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    AlterPartitionResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=int(error),
                        leader_id=ME,
                        leader_epoch=partition.leader_epoch if leader_epoch is None else leader_epoch,
                        isr=[state.broker_id for state in partition.new_isr_with_epochs],
                        partition_epoch=partition.partition_epoch + 1,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        then(AlterPartitionResponse(topics=topics))
        self.broker.loop.end_turn()

    def fail(self, error: ErrorCode) -> None:
        """The whole request fails."""
        ((_, then),) = self.channel.held
        self.channel.held.clear()
        then(KafkaError(error))
        self.broker.loop.end_turn()


class FollowerClient:
    """A follower of the broker, over the wire."""

    def __init__(self, memory: ReplicatedBroker, broker_id: int, topic: str = "t") -> None:
        self.memory = memory
        self.broker_id = broker_id
        self.client: Client = memory.client(client_id=f"broker-{broker_id}-fetcher-0")
        self.topic_id = memory.broker.image.topics[topic].topic_id
        self.broker_epoch = EPOCHS[broker_id]
        self.leader_epoch: int | None = None
        """The epoch that it names; None: the current one."""

    def request(self, offset: int, last_fetched_epoch: int = -1, **options: Any) -> FetchRequest:
        epoch = self.leader_epoch
        if epoch is None:
            epoch = self.memory.broker.partitions.get(self.topic_id, 0).leader_epoch
        partition = FetchRequestFetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=options.pop("log_start_offset", 0),
            partition_max_bytes=1 << 20,
        )
        if (known := options.pop("high_watermark", None)) is not None:
            partition.high_watermark = known
        options.setdefault("max_wait_ms", 0)
        options.setdefault("session_epoch", -1)
        return FetchRequest(
            replica_state=FetchRequestReplicaState(replica_id=self.broker_id, replica_epoch=self.broker_epoch),
            min_bytes=1,
            topics=[FetchRequestFetchTopic(topic_id=self.topic_id, partitions=[partition])],
            **options,
        )

    def fetch(self, offset: int, last_fetched_epoch: int = -1, **options: Any) -> FetchResponsePartitionData:
        """Fetch at an offset: everything below it is on this follower."""
        return the_partition(self.client.ask(self.request(offset, last_fetched_epoch, **options), 18, FetchResponse))

    def wait(self, offset: int, **options: Any) -> None:
        """Send a fetch that waits for half a second."""
        self.client.send(self.request(offset, max_wait_ms=500, **options), 18)

    def answers(self) -> list[FetchResponsePartitionData]:
        """The answers that have arrived."""
        return [the_partition(response) for response in self.client.answers()]  # type: ignore[arg-type]


def the_partition(response: FetchResponse) -> FetchResponsePartitionData:
    """The answer for the only partition."""
    assert response.error_code == 0, ErrorCode(response.error_code)
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition


def produce_request(*values: bytes, acks: int = -1, timeout_ms: int = 1000, topic: str = "t") -> ProduceRequest:
    """A request with one batch."""
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch(*values))))
    return ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def acknowledged(producer: Client) -> list[PartitionProduceResponse]:
    return [
        partition
        for response in producer.answers()
        if isinstance(response, ProduceResponse)
        for topic in response.responses
        for partition in topic.partition_responses
    ]


def errors(producer: Client) -> list[ErrorCode]:
    return [ErrorCode(partition.error_code) for partition in acknowledged(producer)]
