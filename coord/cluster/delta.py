"""What a number of metadata records changed in the image. Source: Kafka 4.4 `MetadataDelta`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.coord.cluster.resources import ConfigResource
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.wire.types import Uuid

FEATURES: Final = "features"
"""The name of a change of feature levels in `ClusterDelta.other_changes`."""

QUOTAS: Final = "quotas"
"""The name of a change of the quotas of clients."""


class ClusterDelta:
    """What a number of records changed, for the components that have to react."""

    __slots__ = (
        "changed_acls",
        "changed_brokers",
        "changed_configs",
        "changed_partitions",
        "created_topics",
        "deleted_topics",
        "new_partitions",
        "other_changes",
        "removed_topic_ids",
    )

    def __init__(self) -> None:
        self.created_topics: dict[Uuid, TopicImage] = {}
        self.deleted_topics: dict[Uuid, TopicImage] = {}
        self.removed_topic_ids: set[Uuid] = set()
        """The ids of all topics that were deleted, also of topics that were created in the same delta."""
        self.new_partitions: dict[tuple[Uuid, int], TopicImage] = {}
        """All new partitions, also the partitions of created topics."""
        self.changed_partitions: dict[tuple[Uuid, int], TopicImage] = {}
        """Existing partitions whose leader, ISR, replicas or other fields have changed."""
        self.changed_configs: set[ConfigResource] = set()
        self.changed_brokers: set[int] = set()
        self.changed_acls: set[Uuid] = set()
        """The ids of ACLs that are new or gone."""
        self.other_changes: set[str] = set()
        """Names of the other kinds of metadata that have changed."""

    def delete_topic(self, topic: TopicImage) -> None:
        """Record a deletion; a topic that was also created in this delta leaves no trace."""
        self.removed_topic_ids.add(topic.topic_id)
        if self.created_topics.pop(topic.topic_id, None) is None:
            self.deleted_topics[topic.topic_id] = topic
        for changes in (self.new_partitions, self.changed_partitions):
            for key in [key for key in changes if key[0] == topic.topic_id]:
                del changes[key]
