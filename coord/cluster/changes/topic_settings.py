"""The configs of a topic that the controller itself acts on: min.insync.replicas and unclean.leader.election.enable.

A value is that set on the topic, else on the controller's node, else for all nodes, else in the settings of this node,
else Kafka's default. Source: Kafka 4.4 `KafkaConfigSchema.resolveEffectiveTopicConfig`.
"""

from __future__ import annotations

from typing import Final

from barnabas.coord.cluster.changes.config_schema import BrokerSettings, ConfigSchema
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.resources import BROKER, TOPIC

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"


class TopicSettings:
    """The effective configs of topics, read from the image for every question."""

    def __init__(self, image: ClusterImage, schema: ConfigSchema, settings: BrokerSettings, node_id: int) -> None:
        self._image = image
        self._schema = schema
        self._settings = settings
        self._node_id = node_id

    def min_isr(self, topic: str, replicas: int) -> int:
        """min.insync.replicas of a topic, at most the number of its replicas."""
        return min(int(self._text(topic, MIN_INSYNC_REPLICAS)), replicas)

    def unclean_leader_election_enable(self, topic: str) -> bool:
        """Whether a replica that is neither in the ISR nor in the ELR may become leader by itself."""
        return self._text(topic, UNCLEAN_LEADER_ELECTION).lower() == "true"

    def default_min_isr(self) -> str:
        """min.insync.replicas in the settings of this node."""
        return self._default(MIN_INSYNC_REPLICAS)

    def _text(self, topic: str, name: str) -> str:
        config = self._image.config
        for resource in ((TOPIC, topic), (BROKER, str(self._node_id)), (BROKER, "")):
            value = config(*resource).get(name)
            if value is not None:
                return value
        return self._default(name)

    def _default(self, name: str) -> str:
        """The value in the settings of this node; the broker's key has the name of the topic's."""
        layers = self._settings.text_layers(name)
        if layers:
            return layers[0][1]
        key = self._schema.keys[TOPIC][name]
        return key.format(key.default) or ""
