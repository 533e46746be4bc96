"""An idempotent producer of input records: each is in the log once, however often it is sent (I1-I3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import produce as p
from tests.simulation.clients.producer import BACKOFF_S, RETRIABLE
from tests.simulation.clock import START_MS

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps

BATCHES = 12


class Source:
    """Sends batches to the partitions of a topic. A restarted process continues with the next batch."""

    def __init__(self, name: str, topic: str, partitions: int, batches: int = BATCHES) -> None:
        self.name = name
        self.acknowledged: list[bytes] = []
        self.is_done = False
        self._topic = topic
        self._partitions = partitions
        self._count = 0
        self._left = batches

    def run(self, process: Process) -> Steps[None]:
        """Send all batches."""
        random = process.random
        producer = yield from self._init(process)
        sequences = [0] * self._partitions
        while self._left:
            self._left -= 1
            values = []
            for _ in range(random.randint(1, 3)):
                self._count += 1
                values.append(b"%s/%d" % (self.name.encode(), self._count))
            partition = random.randrange(self._partitions)
            request = self._request(producer, partition, sequences[partition], values)
            sequences[partition] += len(values)
            if not (yield from self._send(process, request)):
                producer, sequences = (yield from self._init(process)), [0] * self._partitions
            else:
                self.acknowledged += values
            yield random.choice((0.1, 0.5, 1.5))
        self.is_done = True

    def _init(self, process: Process) -> Steps[int]:
        while True:
            response = yield from process.ask(p.InitProducerIdRequest(transactional_id=None), 5)
            if response is not None and not response.error_code:
                return response.producer_id
            yield BACKOFF_S

    def _request(self, producer_id: int, partition: int, sequence: int, values: list[bytes]) -> p.ProduceRequest:
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        for value in values:
            builder.append(START_MS, None, value)
        data = p.PartitionProduceData(index=partition, records=builder.build())
        topics = [p.TopicProduceData(name=self._topic, partition_data=[data])]
        return p.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)

    @staticmethod
    def _send(process: Process, request: p.ProduceRequest) -> Steps[bool]:
        while True:
            response = yield from process.ask(request, 11)
            if response is not None:
                error = E(response.responses[0].partition_responses[0].error_code)
                assert not error or error in RETRIABLE or error is E.KAFKA_STORAGE_ERROR, error
                if not error:
                    return True
            yield BACKOFF_S
