"""Topics just created, on a cluster: its leaders may learn of them after the broker that the client has asked.

Clients retry what is answered with UNKNOWN_TOPIC_OR_PARTITION, but records that are sent with acks=0 before are lost.
"""

from __future__ import annotations

import time

from bench.servers import Server

DEADLINE_S = 60.0


def wait_for_leaders(broker: Server, topic: str, partitions: int) -> None:
    """Return once the leader of each partition serves it."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient(broker.administration.librdkafka())  # not the client under test
    asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(partitions)}
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            for answer in admin.list_offsets(asked, request_timeout=20).values():
                answer.result(20)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
