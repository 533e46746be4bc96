"""What eligible.leader.replicas.version changes beside elections: the rules of min.insync.replicas (KIP-966).

The eligible leader replicas of a partition are the replicas that have everything up to the high watermark, which does
not move while the ISR is smaller than min.insync.replicas. So all nodes must agree on that number: it is set on topics
and for the whole cluster, never on one broker, and where it changes the ELRs end. Source: Kafka 4.4
`ConfigurationControlManager.maybeGenerateElrSafetyRecords`, `createClearElrRecordsAsNeeded`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Final

from barnabas.coord.cluster.changes.topic_settings import MIN_INSYNC_REPLICAS
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.node_records import ELR_FEATURE
from barnabas.coord.cluster.resources import BROKER, TOPIC
from barnabas.coord.cluster.topic_image import TopicImage
from barnabas.wire.messages.records.metadata_records import ClearElrRecord, ConfigRecord, PartitionChangeRecord
from barnabas.wire.schema import Message

VISITED_PER_STEP: Final = 1000
"""The number of partitions that are looked at in one step."""
CLUSTER: Final = (BROKER, "")


def elr_safety_records(image: ClusterImage, default_min_isr: str) -> list[Message]:
    """Before ELR is enabled: one min.insync.replicas for the cluster, and none on single brokers."""
    records: list[Message] = []
    if MIN_INSYNC_REPLICAS not in image.config(*CLUSTER):
        records.append(
            ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_INSYNC_REPLICAS, value=default_min_isr)
        )
    for (kind, name), configs in image.configs.items():
        if kind == BROKER and name and MIN_INSYNC_REPLICAS in configs:
            records.append(ConfigRecord(resource_type=BROKER, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None))
    return records


def elr_end_steps(image: ClusterImage, changed: Sequence[Message]) -> Generator[None, None, list[Message]]:
    """The records that end the ELRs of topics whose min.insync.replicas these records change."""
    if not image.features.get(ELR_FEATURE):
        return []
    resources = {
        (record.resource_type, record.resource_name)
        for record in changed
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
    }
    if not resources:
        return []
    if any(kind == BROKER for kind, _ in resources):
        return (yield from _end(image.topics.values(), ""))
    records: list[Message] = []
    for kind, name in sorted(resources):
        if kind == TOPIC and name in image.topics:
            records += yield from _end([image.topics[name]], name)
    return records


def _end(topics: Iterable[TopicImage], name: str) -> Generator[None, None, list[Message]]:
    """The records for the topics that `name` means in a ClearElrRecord.

    A partition whose ISR is empty keeps its ELR: it has no leader that could move the high watermark, and no other
    broker could lead it.
    """
    ending: list[Message] = []
    has_elr_only = False
    visited = 0
    for topic in topics:
        for index, partition in topic.partitions.items():
            if partition.elr and partition.isr:
                ending.append(
                    PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, eligible_leader_replicas=[])
                )
            has_elr_only |= not partition.isr
            visited += 1
            if visited % VISITED_PER_STEP == 0:
                yield
    if ending and not has_elr_only:
        return [ClearElrRecord(topic_name=name)]
    return ending


def elr_disabled_steps(image: ClusterImage) -> Generator[None, None, list[Message]]:
    """What has to precede the end of the feature: an ELR without an ISR becomes the ISR, the others are cleared."""
    records: list[Message] = []
    visited = 0
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.elr or partition.last_known_elr:
                record = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
                record.isr = list(partition.elr or partition.last_known_elr) if not partition.isr else None
                record.eligible_leader_replicas = [] if partition.elr else None
                record.last_known_elr = [] if partition.last_known_elr else None
                records.append(record)
            visited += 1
            if visited % VISITED_PER_STEP == 0:
                yield
    return records
