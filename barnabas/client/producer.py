"""A producer: partitions records, collects them in batches, keeps several requests in flight, retries in order.

Single-threaded: `send` and `pump` do the work, `flush` waits for it. Idempotent by default, so a retry after
a lost answer appends nothing twice (I1-I3). An error that is not retriable is raised by the next call; `outcome` then
counts the records by their result. With a transactional id all records between `begin` and `commit` are in one
transaction (`client/transaction.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from select import select
from time import monotonic, time_ns

from barnabas.client.accumulator import Batch, Identity, PartitionQueue
from barnabas.client.broker_loads import Loads
from barnabas.client.cluster import Cluster, Topic
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import ClientError, TimedOut, Unreachable, is_retriable, raise_for
from barnabas.client.transaction import LAST_PRODUCE_VERSION, Transaction
from barnabas.wire.batches.records import Header
from barnabas.wire.clients.partitioners import LoadAware, Partitioner
from barnabas.wire.errors import RETRIABLE, ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.schema import Message

MAX_IN_FLIGHT = 5
"""The number of batches that a broker remembers per producer and partition (I1)."""
MAX_REQUEST_BYTES = 4 * 1024 * 1024
RETRY_PAUSE_S = 0.05

RECORD_OVERHEAD_BYTES = 10

_MAYBE_APPENDED = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT)

ScoresOf = Callable[[Sequence[int]], "list[float] | None"]
"""The loads of brokers, 0 to 1; None if they are not known."""
MakePartitioner = Callable[[int], Partitioner]
"""Makes a partitioner from a topic's number of partitions."""


@dataclass(slots=True)
class Outcome:
    """How many records are in the topics for sure, how many may be, and how many are not.

    `complete` is the number of records, from the first on, that are all acknowledged; others may be acknowledged too.
    """

    acknowledged: int
    unknown: int
    missing: int
    complete: int


@dataclass(eq=False, slots=True)
class TopicQueues:
    """A topic that is being written: a queue per partition, and the partitioner."""

    queues: list[PartitionQueue]
    partitioner: Partitioner

    def look_at_loads(self, leaders: Sequence[int], scores_of: ScoresOf | None = None) -> None:
        """Give a load-aware partitioner the queue length of each partition that has a leader (KIP-794).

        `scores_of` gives the loads of those brokers, where they are known.
        """
        if isinstance(self.partitioner, LoadAware):
            led = [queue for queue in self.queues if leaders[queue.index] >= 0]
            scores = None if scores_of is None else scores_of([leaders[queue.index] for queue in led])
            self.partitioner.update([queue.bytes_waiting for queue in led], [queue.index for queue in led], scores)


class Producer:
    """Sends records to the topics of a cluster. Call `flush` at the end."""

    def __init__(
        self,
        cluster: Cluster,
        make_partitioner: MakePartitioner,
        *,
        acks: int = -1,
        codec: int = 0,
        level: int | None = None,
        batch_bytes: int = 128 * 1024,
        buffer_bytes: int = 32 * 1024 * 1024,
        idempotent: bool = True,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        on_acknowledged: Callable[[Batch], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.make_partitioner = make_partitioner
        self.acks = acks
        self.codec = codec
        self.level = level
        self.batch_bytes = batch_bytes
        self.buffer_bytes = buffer_bytes
        self.idempotent = idempotent and acks == -1
        self.acknowledged_records = 0
        self.acknowledged_bytes = 0
        self._identity = Identity()
        self.transaction: Transaction | None = None
        if transactional_id is not None:
            self.transaction = Transaction(cluster, transactional_id, transaction_timeout_ms)
        self.on_acknowledged = on_acknowledged
        self._topics: dict[str, TopicQueues] = {}
        self._loads = Loads()
        self._count = 0
        self._bytes_waiting = 0
        self._failure: BaseException | None = None
        self._in_flight_limit = MAX_IN_FLIGHT if self.idempotent or acks == 0 else 1

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Iterable[Header] = (),
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Add one record; it is sent when its batch is full, or at the next `seal` or `flush`.

        Blocks while more than `buffer_bytes` wait. Errors: errors of earlier records, NotFound, TimedOut, Unreachable.
        """
        target = self._topics.get(topic) or self._open_topic(topic)
        queues = target.queues
        if partition is None:
            size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
            partition = target.partitioner.choose(key, size)
        elif partition >= len(queues):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has {len(queues)} partitions, and {partition} is not one of them",
            )
        queue = queues[partition]
        order = self._count
        self._count = order + 1
        now_ms = time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        if queue.append(order, now_ms, key, value, headers) >= self.batch_bytes:
            self._seal(queue)
            self.pump(0)
            while self._bytes_waiting > self.buffer_bytes:
                self.pump(0.1)

    def seal(self) -> None:
        """Send the collected records without waiting for answers."""
        for topic in self._topics.values():
            for queue in topic.queues:
                self._seal(queue)
        self.pump(0)

    @property
    def is_busy(self) -> bool:
        """True while a sealed batch is not acknowledged."""
        return self._bytes_waiting > 0

    def flush(self) -> None:
        """Send all records and wait until they are acknowledged."""
        self.seal()
        while self.is_busy:
            self.pump(0.1)
        self._raise_failure()

    def open(self, topic: str) -> int:
        """Make the producer and a topic ready, so that `send` does not wait for that; its number of partitions."""
        return len((self._topics.get(topic) or self._open_topic(topic)).queues)

    def stop(self, error: BaseException) -> None:
        """Let the call that runs now, or the next one, raise `error`. May be called by a signal handler."""
        self._failure = self._failure or error

    def resume(self) -> None:
        """Clear the error of `stop`, so that the collected records can be sent."""
        self._failure = None

    def settle(self, timeout_s: float) -> None:
        """Send nothing more, and wait at most `timeout_s` for the answers in flight. Their errors are not raised."""
        deadline = monotonic() + timeout_s
        while waiting := [connection for connection in self.cluster.open_connections if connection.in_flight]:
            remaining = deadline - monotonic()
            if remaining <= 0:
                return
            for connection in select(waiting, [], [], remaining)[0]:
                connection.receive()

    def outcome(self) -> Outcome:
        """The results of the records so far."""
        unknown = missing = 0
        complete = self._count
        for topic in self._topics.values():
            for queue in topic.queues:
                for batch in queue.unacknowledged:
                    complete = min(complete, batch.order)
                    in_doubt = batch.may_be_appended or (batch in queue.in_flight and not batch.is_refused)
                    unknown += batch.count if in_doubt else 0
                    missing += 0 if in_doubt else batch.count
        return Outcome(self.acknowledged_records, unknown, missing, complete)

    def _seal(self, queue: PartitionQueue) -> None:
        if queue.open is not None:
            queue.seal(monotonic() + self.cluster.timeout_s)
            self._bytes_waiting += queue.sealed[-1].size

    def _open_topic(self, name: str) -> TopicQueues:
        if self.idempotent and self._identity.producer_id < 0:
            self._identity = self._init_producer_id()
        topic = self.cluster.retry(lambda deadline: self.cluster.topic(name, deadline, create=True))
        queues = [
            PartitionQueue(name, index, self._identity, self.codec, self.level) for index in range(len(topic.leaders))
        ]
        opened = self._topics[name] = TopicQueues(queues, self.make_partitioner(len(queues)))
        return opened

    def _init_producer_id(self) -> Identity:
        if self.transaction is not None:
            return self.transaction.initialize()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def attempt(deadline: float) -> Identity:
            response = self.cluster.any_node(deadline).call(request, InitProducerIdResponse, deadline)
            is_denied = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            hint = "this user may write to no topic" if is_denied else None
            raise_for(response.error_code, "cannot get a producer id", hint=hint)
            return Identity(response.producer_id, response.producer_epoch)

        return self.cluster.retry(attempt)

    # --- sending

    def pump(self, timeout_s: float) -> None:
        """Send the batches that are ready, then process answers; wait at most `timeout_s` for the first."""
        self._raise_failure()
        now = monotonic()
        for node_id, queues in self._ready_by_leader(now).items():
            if self.transaction is not None:
                self.transaction.add((queue.topic, queue.index) for queue in queues)
            self._send_to(node_id, queues, now)
        waiting = [connection for connection in self.cluster.open_connections if connection.in_flight]
        if not waiting:
            if timeout_s:
                select([], [], [], min(timeout_s, RETRY_PAUSE_S))
            return
        readable, _, _ = select(waiting, [], [], timeout_s)
        for connection in readable:
            connection.receive()
        self._raise_failure()

    def _ready_by_leader(self, now: float) -> dict[int, list[PartitionQueue]]:
        ready: dict[int, list[PartitionQueue]] = {}
        for name, target in self._topics.items():
            waiting = [queue for queue in target.queues if queue.is_ready(now, self._in_flight_limit)]
            if not waiting:
                continue
            overdue = next((queue for queue in waiting if queue.sealed[0].deadline < now), None)
            if overdue is not None:
                raise TimedOut(f"{name}-{overdue.index} has not accepted a batch for {self.cluster.timeout_s:g} s")
            topic = self._topic(name, waiting, now)
            if topic is None:
                continue
            target.look_at_loads(topic.leaders, lambda brokers: self._loads.scores(self.cluster, brokers, now))
            for queue in waiting:
                ready.setdefault(topic.leaders[queue.index], []).append(queue)
        return ready

    def _topic(self, name: str, waiting: list[PartitionQueue], now: float) -> Topic | None:
        """The topic's metadata; None, and a pause for its queues, if it is not available now."""
        try:
            return self.cluster.topic(name, now + self.cluster.timeout_s, create=True)
        except (KafkaError, ClientError) as error:
            if not is_retriable(error):
                raise
            for queue in waiting:
                queue.retry_at = now + RETRY_PAUSE_S
            return None

    def _send_to(self, node_id: int, queues: list[PartitionQueue], now: float) -> None:
        """Send one request to a leader, with the next batch of each queue up to the size limit."""
        try:
            node = self.cluster.node(node_id, now + self.cluster.timeout_s)
        except (KafkaError, ClientError) as error:
            if not is_retriable(error):
                raise
            for queue in queues:
                self.cluster.forget(queue.topic)
                queue.retry_at = now + RETRY_PAUSE_S
            return
        while queues and node.in_flight < MAX_IN_FLIGHT:
            sent: list[tuple[PartitionQueue, Batch]] = []
            size = 0
            for queue in queues:
                if sent and size + queue.sealed[0].size > MAX_REQUEST_BYTES:
                    break
                size += queue.sealed[0].size
                sent.append((queue, queue.take()))
            self._produce(node, sent)
            queues = [queue for queue in queues if queue.is_ready(now, self._in_flight_limit)]

    def _produce(self, node: NodeConnection, sent: list[tuple[PartitionQueue, Batch]]) -> None:
        topics: dict[str, TopicProduceData] = {}
        for queue, batch in sent:
            data = topics.get(queue.topic)
            if data is None:
                topic_id = self.cluster.topic(queue.topic, batch.deadline).topic_id
                data = topics[queue.topic] = TopicProduceData(name=queue.topic, topic_id=topic_id)
            data.partition_data.append(PartitionProduceData(index=queue.index, records=batch.payload))
        transaction = self.transaction
        request = ProduceRequest(
            transactional_id=None if transaction is None else transaction.transactional_id,
            acks=self.acks,
            timeout_ms=int(self.cluster.timeout_s * 1000),
            topic_data=list(topics.values()),
        )
        names = {data.topic_id: name for name, data in topics.items()}

        def answered(reply: Message | None, error: ClientError | None) -> None:
            if isinstance(reply, ProduceResponse):
                self._answered(sent, reply, names)
                return
            for queue, batch in sent:
                batch.may_be_appended = True
                self._retry(queue, batch, error or Unreachable("the connection was lost"))

        if self.acks == 0:
            if node.send_unanswered(request):
                for queue, batch in sent:
                    self._acknowledge(queue, batch)
            else:
                answered(None, None)
            return
        node.send(request, answered, max_version=None if transaction is None else LAST_PRODUCE_VERSION)

    # --- answers

    def _answered(
        self, sent: list[tuple[PartitionQueue, Batch]], response: ProduceResponse, names: dict[bytes, str]
    ) -> None:
        answers: dict[tuple[str, int], PartitionProduceResponse] = {}
        for topic in response.responses:
            for partition in topic.partition_responses:
                answers[topic.name or names.get(topic.topic_id, ""), partition.index] = partition
        for queue, batch in sent:
            result = answers.get((queue.topic, queue.index))
            if result is None:
                batch.may_be_appended = True
                self._retry(queue, batch, Unreachable(f"no answer for {queue.topic}-{queue.index}"))
            elif result.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                batch.base_offset = result.base_offset
                self._acknowledge(queue, batch)
            else:
                self._refused(queue, batch, result)

    def _refused(self, queue: PartitionQueue, batch: Batch, response: PartitionProduceResponse) -> None:
        echo = response.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and queue.has_earlier(batch)
        try:
            raise_for(response.error_code, f"{queue.topic}-{queue.index} refused a batch", response.error_message)
        except KafkaError as error:
            if error.code in _MAYBE_APPENDED:
                batch.may_be_appended = True
            if echo or error.code in RETRIABLE:
                self._retry(queue, batch, error)
            else:
                batch.is_refused = True
                self._failure = self._failure or error

    def _acknowledge(self, queue: PartitionQueue, batch: Batch) -> None:
        queue.acknowledge(batch)
        self._bytes_waiting -= batch.size
        self.acknowledged_records += batch.count
        self.acknowledged_bytes += batch.size
        if self.on_acknowledged is not None:
            self.on_acknowledged(batch)

    def _retry(self, queue: PartitionQueue, batch: Batch, error: Exception) -> None:
        now = monotonic()
        self.cluster.forget(queue.topic)
        queue.put_back(batch, now + RETRY_PAUSE_S)
        if batch.deadline < now:
            self._failure = self._failure or TimedOut(f"failed for {self.cluster.timeout_s:g} s: {error}")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
