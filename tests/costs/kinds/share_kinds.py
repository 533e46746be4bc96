"""The requests of a member of a share group (KIP-932)."""

from __future__ import annotations

import uuid

from barnabas.wire.messages.groups.share_groups import (
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from barnabas.wire.messages.groups.share_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateRequestPartitionData,
    InitializeStateData,
)
from barnabas.wire.types import uuid_to_text
from tests.costs.client import SHARE as SHARE_KEY
from tests.costs.client import check, find_coordinator, when_available
from tests.costs.kind import Kind, Steps, one_client
from tests.costs.kinds.batches import batch
from tests.costs.kinds.produce_kinds import VERSION as PRODUCE_VERSION
from tests.costs.kinds.produce_kinds import produce_request, produced
from tests.costs.world import PLAIN, CountedWorld

VERSION = 2
ACCEPT = 1
RECORDS = 10
"""Acquired by each fetch, one batch, and acknowledged by the next one."""


def _share_fetch(world: CountedWorld) -> Steps:
    client, group = world.client(), "share-fetch"
    topic_id = client.create_topic(group)
    find_coordinator(client, f"{group}:{uuid_to_text(topic_id)}:0", SHARE_KEY)
    requested = InitializeShareGroupStateRequestPartitionData(partition=0, state_epoch=0, start_offset=0)
    state = InitializeShareGroupStateRequest(
        group_id=group, topics=[InitializeStateData(topic_id=topic_id, partitions=[requested])]
    )
    when_available(lambda: client.ask(state, 0), lambda result: result.results[0].partitions[0].error_code)
    records = batch(RECORDS)
    for _ in range(60):
        produced(client.ask(produce_request(group, records), PRODUCE_VERSION))
    member_id = str(uuid.uuid4())

    def fetch(epoch: int, acknowledged: tuple[int, int] | None) -> ShareFetchRequest:
        partition = ShareFetchRequestFetchPartition(partition_index=0)
        if acknowledged is not None:
            first, last = acknowledged
            partition.acknowledgement_batches = [
                ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])
            ]
        return ShareFetchRequest(
            group_id=group,
            member_id=member_id,
            share_session_epoch=epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_records=RECORDS,
            batch_size=RECORDS,
            topics=[ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=[partition])],
        )

    response = when_available(lambda: client.ask(fetch(0, None), VERSION), lambda result: result.error_code)
    epoch = 1
    while True:
        (result,) = response.responses[0].partitions
        check(result.error_code or result.acknowledge_error_code, "ShareFetch")
        (acquired,) = result.acquired_records
        (response,) = yield one_client(client, fetch(epoch, (acquired.first_offset, acquired.last_offset)), VERSION)
        check(response.error_code, "ShareFetch")
        epoch += 1


SHARE = (Kind("ShareFetch with acknowledgements", PLAIN, _share_fetch),)
