"""The image of the cluster's metadata, and how the broker applies its changes: the same for every kind of controller.

`publish` calls the subscribers with a change that is in the image already: partitions, coordinators, then the
configuration. They are called in the order of their subscription, in steps; one that fails is logged and does not stop
the others. Source: Kafka 4.4 `MetadataLoader`, `BrokerMetadataPublisher`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.broker.config.server_config import UNUSED
from barnabas.broker.event_loop.guarded import call_guarded, log_failure
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.resources import BROKER, GROUP, TOPIC
from barnabas.storage.topic_keys import TOPIC_KEYS

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.steps import Steps

T = TypeVar("T")

logger = logging.getLogger("kafka.server.MetadataLoader")

CONFIGS_PER_STEP: Final = 200
"""The number of resources whose changed configs are checked in one step."""


class MetadataLoader:
    """The image, and the subscribers to its changes."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._replayed: ClusterDelta | None = None
        self._warned: set[tuple[int, str]] = set()
        self.image = ClusterImage()
        """The cluster's current metadata."""
        self.on_change: list[Callable[[ClusterDelta], Steps[None] | None]] = []
        """Called in order with every change of the image, before the request that caused it is answered.

        A subscriber whose part is long returns it as a generator of steps.
        """
        self.on_config_change: list[Callable[[set[str]], Steps[None] | None]] = []
        """Called with the names of broker configs that a request has changed, after they are effective."""
        self.on_group_config_change: list[Callable[[ClusterDelta], None]] = []
        """Called when configs of groups or of the broker have changed, after they are effective."""

    def has_topic(self, name: str) -> bool:
        """Whether a topic exists and its creation is in effect: its partitions are open."""
        topic = self.image.topics.get(name)
        if topic is None or self._replayed is None:
            return topic is not None
        return topic.topic_id not in self._replayed.created_topics

    def replaying(self, delta: ClusterDelta | None) -> None:
        """Records are being replayed into the image, with these changes, and are published later; None at the end."""
        self._replayed = delta

    def publish(self, delta: ClusterDelta) -> Steps[None]:
        """Have the broker apply a change that is in the image."""
        self._replayed = delta
        try:
            yield from self._publish(delta)
        finally:
            self._replayed = None

    def _publish(self, delta: ClusterDelta) -> Steps[None]:
        for subscriber in self.on_change:
            yield from _guarded_steps("Applying a change of the metadata", subscriber, delta)
        for count, (kind, name) in enumerate(delta.changed_configs, 1):
            self._warn_unused(kind, name)
            if count % CONFIGS_PER_STEP == 0:
                yield None
        if any(kind == BROKER for kind, _ in delta.changed_configs):
            changed = self.apply_dynamic_configs()
            for listener in self.on_config_change:
                yield from _guarded_steps("Applying changed configs of the broker", listener, changed)
        if any(kind in {BROKER, GROUP} for kind, _ in delta.changed_configs):
            for follower in self.on_group_config_change:
                call_guarded("Applying changed configs of groups", follower, delta)

    def apply_dynamic_configs(self) -> set[str]:
        """Make the dynamic configs of the image effective; return the names of the keys whose values have changed."""
        own = self.image.config(BROKER, str(self._config.node_id))
        return self._config.set_dynamic(own, self.image.config(BROKER, ""))

    def _warn_unused(self, kind: int, name: str) -> None:
        """Warn once about every config that was set and has no effect."""
        keys = TOPIC_KEYS if kind == TOPIC else BROKER_KEYS
        for config, value in self.image.config(kind, name).items():
            key = keys.get(config)
            if key is None or key.used or key.parse(value) == key.default:
                continue
            if (kind, config) not in self._warned:
                self._warned.add((kind, config))
                logger.warning("Config %s (set on %r) is %s", config, name, UNUSED)


def _guarded_steps(what: str, subscriber: Callable[[T], Steps[None] | None], change: T) -> Steps[None]:
    """Call a subscriber and do its steps; an exception is logged and does not stop the others."""
    try:
        steps = subscriber(change)
        if steps is not None:
            yield from steps
    except Exception as error:
        log_failure(what, error)
