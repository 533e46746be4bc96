"""Requests that ask what there is: versions, topics, offsets."""

from __future__ import annotations

from functools import partial

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.costs.client import check
from tests.costs.kind import Kind, Steps, one_client
from tests.costs.kinds.batches import TIME_MS, batch
from tests.costs.kinds.produce_kinds import VERSION as PRODUCE_VERSION
from tests.costs.kinds.produce_kinds import produce_request, produced
from tests.costs.world import PLAIN, CountedWorld

LATEST = -1
BATCHES = 20


def _api_versions(world: CountedWorld) -> Steps:
    client = world.client()
    request = ApiVersionsRequest(client_software_name="costs", client_software_version="1")
    while True:
        (response,) = yield one_client(client, request, 4)
        check(response.error_code, "ApiVersions")


def _metadata(world: CountedWorld) -> Steps:
    client = world.client()
    client.create_topic("metadata", 10)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="metadata")], allow_auto_topic_creation=False)
    while True:
        (response,) = yield one_client(client, request, 12)
        check(response.topics[0].error_code, "Metadata")


def _list_offsets(world: CountedWorld, *, timestamp: int) -> Steps:
    client, topic = world.client(), f"list-offsets{timestamp}"
    client.create_topic(topic)
    for number in range(BATCHES):
        records = batch(150, time_ms=TIME_MS + number)
        produced(client.ask(produce_request(topic, records), PRODUCE_VERSION))
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    while True:
        (response,) = yield one_client(client, request, 9)
        check(response.topics[0].partitions[0].error_code, "ListOffsets")


METADATA = (
    Kind("ApiVersions", PLAIN, _api_versions),
    Kind("Metadata, 10 partitions", PLAIN, _metadata),
    Kind("ListOffsets, latest", PLAIN, partial(_list_offsets, timestamp=LATEST)),
    Kind("ListOffsets, timestamp", PLAIN, partial(_list_offsets, timestamp=TIME_MS + BATCHES // 2)),
)
