"""A member of a share group on a `MemoryBroker`, driven request by request."""

from __future__ import annotations

from barnabas.wire.batches.records import iter_batches, iter_records
from barnabas.wire.messages import configs as c
from barnabas.wire.messages.groups import share_groups as g
from barnabas.wire.messages.groups import share_state as s
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.support.memory.broker import MemoryBroker, batch

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
FEW = {"share.coordinator.state.topic.num.partitions": "3", "group.share.min.record.lock.duration.ms": "1000"}
VERSION = 2


class RestartableBroker(MemoryBroker):
    """A broker that can be closed and opened again on its data."""

    def __init__(self, data_dir, sets, files=None):
        self.arguments = {"data_dir": data_dir, "sets": sets, "files": files}
        super().__init__(**self.arguments)

    def restart(self):
        self.broker.is_stopping = True  # so that closed connections do not release records
        self.close()
        super().__init__(**self.arguments)


class Queue(RestartableBroker):
    """A broker with a topic `q`."""

    def __init__(self, data_dir, partitions=1, files=None, **sets):
        super().__init__(data_dir, {**FEW, **sets}, files)
        self.topic_id = self.create_topic("q", partitions)

    def initialize(self, group="g", partition=0, start_offset=0, state_epoch=0):
        """What the group coordinator does when a group subscribes."""
        requested = s.InitializeShareGroupStateRequestPartitionData(
            partition=partition, state_epoch=state_epoch, start_offset=start_offset
        )
        request = s.InitializeShareGroupStateRequest(
            group_id=group, topics=[s.InitializeStateData(topic_id=self.topic_id, partitions=[requested])]
        )
        response = self.client().ask(request, 0, s.InitializeShareGroupStateResponse)
        assert response.results[0].partitions[0].error_code == 0, response

    def kept(self, group="g", partition=0):
        """The saved state of a share partition."""
        requested = s.ReadShareGroupStateRequestPartitionData(partition=partition, leader_epoch=0)
        request = s.ReadShareGroupStateRequest(
            group_id=group, topics=[s.ReadStateData(topic_id=self.topic_id, partitions=[requested])]
        )
        return self.client().ask(request, 0, s.ReadShareGroupStateResponse).results[0].partitions[0]

    def produce(self, *values, partition=0, records=None):
        """Append one batch of these values, or record batches unchanged."""
        data = PartitionProduceData(index=partition, records=records or batch(*values))
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="q", partition_data=[data])]
        )
        response = self.client().ask(request, 9, ProduceResponse)
        answered = response.responses[0].partition_responses[0]
        assert answered.error_code == 0, answered
        return answered.base_offset

    def set_group(self, group, name, value):
        """Set a config of a group."""
        resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=32,
            resource_name=group,
            configs=[c.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)],
        )
        response = self.client().ask(
            c.IncrementalAlterConfigsRequest(resources=[resource]), 1, c.IncrementalAlterConfigsResponse
        )
        assert response.responses[0].error_code == 0, response

    def live(self, group="g", partition=0):
        """The records of a share partition, in the broker's memory."""
        from barnabas.coord.share_state.key import SharePartitionKey

        return self.broker.share_partitions.find(SharePartitionKey(group, self.topic_id, partition)).state


class Member:
    """One member of a group, on a connection of its own."""

    def __init__(self, queue, member_id, group="g", partitions=(0,)):
        self.queue = queue
        self.member_id = member_id
        self.group = group
        self.partitions = partitions
        self.client = queue.client(client_id=member_id)
        self.epoch = 0

    def fetch_request(self, *, acks=None, **options):
        """A ShareFetch; `acks` are (first, last, types) of partition 0, or a dict by partition."""
        acks = acks if isinstance(acks, dict) else {0: acks or []}
        named = self.partitions if self.epoch == 0 else ()
        partitions = [
            g.ShareFetchRequestFetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    g.ShareFetchRequestAcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=types
                    )
                    for first, last, types in acks.get(index, [])
                ],
            )
            for index in sorted({*named, *(index for index, batches in acks.items() if batches)})
        ]
        values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        values.update(options)
        return g.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=values.pop("epoch", self.epoch),
            topics=[g.ShareFetchRequestFetchTopic(topic_id=self.queue.topic_id, partitions=partitions)]
            if partitions
            else [],
            **values,
        )

    def send(self, *, version=VERSION, **options):
        self.client.send(self.fetch_request(**options), version)

    def answers(self):
        responses = self.client.answers()
        for response in responses:
            if isinstance(response, g.ShareFetchResponse) and not response.error_code:
                self.epoch += 1
        return responses

    def fetch(self, **options):
        """Send a request and return its response, which must be immediate."""
        self.send(**options)
        (response,) = self.answers()
        return response

    def take(self, **options):
        """Fetch; (first, last, delivery count) of what was acquired in partition 0."""
        response = self.fetch(**options)
        assert response.error_code == 0, response
        return acquired(response)

    def acknowledge_request(self, *acks, epoch=None, renews=False):
        batches = [
            g.ShareAcknowledgeRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in acks
        ]
        topics = [
            g.AcknowledgeTopic(
                topic_id=self.queue.topic_id,
                partitions=[g.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)],
            )
        ]
        return g.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            is_renew_ack=renews,
            topics=topics if acks else [],
        )

    def acknowledge(self, *acks, **options):
        """Acknowledge (first, last, types) of partition 0; the error of the request, or of the partition."""
        request = self.acknowledge_request(*acks, **options)
        response = self.client.ask(request, VERSION, g.ShareAcknowledgeResponse)
        if response.error_code:
            return response.error_code
        self.epoch += 1
        return response.responses[0].partitions[0].error_code if acks else 0


def acquired(response, partition=0):
    """(first, last, delivery count) of a partition's acquired records."""
    for data in partitions_of(response):
        if data.partition_index == partition:
            assert data.error_code == 0, data
            return [
                (records.first_offset, records.last_offset, records.delivery_count) for records in data.acquired_records
            ]
    return []


def partitions_of(response):
    return [data for topic in response.responses for data in topic.partitions]


def values(response, partition=0):
    """The values of the acquired records of a partition, by offset."""
    by_offset = {}
    for data in partitions_of(response):
        if data.partition_index == partition:
            for record_batch in iter_batches(bytes(data.records)):
                for record in [] if record_batch.is_control else iter_records(record_batch):
                    if any(a.first_offset <= record.offset <= a.last_offset for a in data.acquired_records):
                        by_offset[record.offset] = bytes(record.value)
    return by_offset
