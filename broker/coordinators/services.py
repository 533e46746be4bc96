"""The parts of the broker that the coordinators use. They get no other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.network_client import NetworkClient
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.wire.errors import KafkaError


class BrokerServices(NamedTuple):
    """The parts that every coordinator runtime needs."""

    loop: Loop
    config: ServerConfig
    partitions: Partitions
    image: Callable[[], ClusterImage]
    """Returns the current metadata image."""
    has_topic: Callable[[str], bool]
    """Whether a topic exists and its partitions are open."""
    create_topics: Callable[[Iterable[str], Callable[[Mapping[str, KafkaError]], None]], None]
    """Creates the named topics that do not exist, then calls back with the errors by name."""
    client: Callable[[int, str], NetworkClient]
    """The connection to another broker for a purpose; only called in a cluster."""
