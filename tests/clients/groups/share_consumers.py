"""Share consumers of librdkafka, and the requests that prepare their groups."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Producer, ShareConsumer

from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.configs import IncrementalAlterConfigsRequestAlterableConfig as AlterableConfig
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterConfigsResource as AlterConfigsResource,
)
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import wait_for

DEADLINE_S = 120.0


GROUP_RESOURCE = 32


def ask(bootstrap, request, version):
    """The response to one request, of any broker."""
    with closing(RawClient(bootstrap)) as client:
        return client(request, version)


def prepare(bootstrap, topic, group, partitions=1):
    """Create a topic, and a group that starts at its first offset."""
    created = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1)
    response = ask(bootstrap, CreateTopicsRequest(topics=[created], timeout_ms=20_000), 7)
    assert response.topics[0].error_code == 0
    reset = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[reset])
    response = ask(bootstrap, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response


def produce(bootstrap, topic, values):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(DEADLINE_S) == 0


def consumer_of(bootstrap, group, topic, **settings):
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, **settings})
    consumer.subscribe([topic])
    return consumer


def poll(consumer, count):
    """Poll until at least so many records are received."""
    messages = []

    def enough():
        messages.extend(message for message in consumer.poll(0.5) if message.error() is None)
        return len(messages) >= count

    wait_for(enough, lambda: f"{count} records, only {[message.value() for message in messages]}", DEADLINE_S)
    return messages
