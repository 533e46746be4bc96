"""Topics just created, on a cluster: its leaders may learn of them after the broker that the client has asked.

Clients retry requests that fail with UNKNOWN_TOPIC_OR_PARTITION, but records sent with acks=0 before are lost.
"""

from __future__ import annotations

from tests.support.processes.server import Server
from tests.support.waiting import wait_for


def wait_for_leaders(broker: Server, topic: str, partitions: int) -> None:
    """Return once the leader of each partition serves it."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient(broker.administration.librdkafka())  # not the client under test
    latest = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(partitions)}

    def are_served() -> bool:
        for offsets in admin.list_offsets(latest, request_timeout=20).values():
            offsets.result(20)
        return True

    wait_for(are_served, f"leaders of {partitions} partitions of {topic}", errors=(KafkaException,), pause_s=0.0)
