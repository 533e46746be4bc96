"""The topics of the metadata image, in the form in which group coordinators read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.coord.groups.topics import Topic

if TYPE_CHECKING:
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.wire.types import Uuid


class ClusterTopics:
    """Implements `coord.groups.topics.Topics` on the current metadata image."""

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image

    def by_name(self, name: str, /) -> Topic | None:
        """The topic of this name, or None."""
        image = self._image()
        return _with_racks(image, image.topic(name))

    def by_id(self, topic_id: Uuid, /) -> Topic | None:
        """The topic of this id, or None."""
        image = self._image()
        return _with_racks(image, image.topic_by_id(topic_id))

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._image().topics


def _with_racks(image: ClusterImage, found: TopicImage | None) -> Topic | None:
    if found is None:
        return None
    racks = {broker.id: broker.rack for broker in image.brokers.values() if broker.rack}
    if not racks:
        return Topic(found.topic_id, found.name, len(found.partitions))
    replicas = (found.partitions[index].replicas for index in sorted(found.partitions))
    of_partitions = tuple(frozenset(racks[node] for node in nodes if node in racks) for nodes in replicas)
    return Topic(found.topic_id, found.name, len(found.partitions), of_partitions)
