"""The parts of the broker that the coordinators work with. They get these and nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.loop import Loop
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.coord.cluster.image import ClusterImage


class BrokerServices(NamedTuple):
    """What every coordinator runtime needs."""

    loop: Loop
    config: ServerConfig
    partitions: Partitions
    image: Callable[[], ClusterImage]
    """Returns the current metadata image."""
    create_topics: Callable[[Iterable[str]], None]
    """Creates those of the named topics that do not exist; KafkaError if that fails."""
