"""A transactional producer on a `MemoryBroker`, driven request by request."""

from __future__ import annotations

from barnabas.wire.messages import list_offsets as lo
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from tests.support.memory.broker import batch

FEW = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"}


class TransactionalClient:
    """A transactional producer and a reader, driven request by request."""

    def __init__(self, memory, transactional_id="x"):
        self.client = memory.client()
        self.transactional_id = transactional_id
        self.sequences = {}
        self.producer = (-1, -1)

    def find(self, key_type=1, key=None):
        request = g.FindCoordinatorRequest(coordinator_keys=[key or self.transactional_id], key_type=key_type)
        (coordinator,) = self.client.ask(request, 6, g.FindCoordinatorResponse).coordinators
        return coordinator.error_code

    def start(self, version=5, **fields):
        """FindCoordinator and InitProducerId; the error of the latter."""
        assert self.find() == 0
        fields = {"transaction_timeout_ms": 60_000, **fields}
        request = p.InitProducerIdRequest(transactional_id=self.transactional_id, **fields)
        response = self.client.ask(request, version, p.InitProducerIdResponse)
        if not response.error_code:
            self.producer = (response.producer_id, response.producer_epoch)
            self.sequences.clear()
        return response.error_code

    def produce_request(self, *values, topic="t", partition=0, codec=0):
        sequence = self.sequences.get((topic, partition), 0)
        records = batch(
            *values,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=sequence,
            transactional=True,
            codec=codec,
        )
        self.sequences[topic, partition] = sequence + len(values)
        data = p.PartitionProduceData(index=partition, records=records)
        return p.ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[p.TopicProduceData(name=topic, partition_data=[data])],
        )

    def produce(self, *values, version=12, **place):
        response = self.client.ask(self.produce_request(*values, **place), version, p.ProduceResponse)
        return response.responses[0].partition_responses[0].error_code

    def add(self, *places, version=3):
        topics = [t.AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in places]
        request = t.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer[0],
            v3_and_below_producer_epoch=self.producer[1],
            v3_and_below_topics=topics,
        )
        response = self.client.ask(request, version, t.AddPartitionsToTxnResponse)
        return [
            partition.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
        ]

    def end_request(self, commit):
        return t.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=commit,
        )

    def end(self, commit=True, version=5):
        response = self.client.ask(self.end_request(commit), version, t.EndTxnResponse)
        self.take_end(response, version)
        return response.error_code

    def take_end(self, response, version=5):
        if version >= 5 and not response.error_code:
            self.producer = (response.producer_id, response.producer_epoch)
            self.sequences.clear()

    def add_offsets(self, group="g", version=4):
        request = t.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            group_id=group,
        )
        return self.client.ask(request, version, t.AddOffsetsToTxnResponse).error_code

    def commit_offset(self, offset, version=5, group="g", partition=0, **member):
        partition_request = t.TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = t.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            topics=[t.TxnOffsetCommitRequestTopic(name="t", partitions=[partition_request])],
            **member,
        )
        return self.client.ask(request, version, t.TxnOffsetCommitResponse).topics[0].partitions[0].error_code


def latest(memory, isolation):
    partition_request = lo.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = lo.ListOffsetsTopic(name="t", partitions=[partition_request])
    request = lo.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[topic])
    return memory.client().ask(request, 7, lo.ListOffsetsResponse).topics[0].partitions[0].offset


def marker(producer, topic="t", partition=0, *, epoch, commit=True, version=2):
    txn_marker = t.WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[t.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        coordinator_epoch=0,
        transaction_version=version,
    )
    return t.WriteTxnMarkersRequest(markers=[txn_marker])
