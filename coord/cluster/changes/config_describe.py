"""DescribeConfigs: every key of a resource with its value, the source of the value, and its synonyms.

The value of a topic's key is the one set on the topic, else the broker's setting, else Kafka's default;
`synonyms` lists them by precedence. Passwords are never returned. Source: Kafka 4.4 `ConfigHelper`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from barnabas.coord.cluster.changes import config_schema as source
from barnabas.coord.cluster.changes.config_schema import BROKER_SYNONYMS, BrokerSettings, ConfigSchema
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.resources import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigResource
from barnabas.coord.topic_names import check_topic_name
from barnabas.wire.configdef import NOT_ACTED_ON, ConfigKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

CONFIG_TYPES: Final = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}


class ConfigDescriber:
    """Describes the configs of topics, brokers, groups and client metrics subscriptions."""

    def __init__(self, image: ClusterImage, schema: ConfigSchema, settings: BrokerSettings, node_id: int) -> None:
        self._image = image
        self._schema = schema
        self._settings = settings
        self._node_id = node_id

    def describe(
        self, resource: ConfigResource, names: Collection[str] | None, *, synonyms: bool, documentation: bool
    ) -> list[DescribeConfigsResourceResult]:
        """All configs of a resource, or those in `names`; KafkaError when the resource does not exist."""
        kind, name = resource
        if kind == TOPIC:
            self._check_topic(name)
            entries = self.topic_entries(self._image.config(TOPIC, name))
        elif kind == BROKER:
            self._check_broker(name)
            entries = self._broker_entries(name)
        elif kind in {GROUP, CLIENT_METRICS}:
            if not name:
                what = "Group name" if kind == GROUP else "Client metrics subscription name"
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")
            entries = self._own_entries(kind, name)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
        selected = None if names is None else frozenset(names)
        chosen = [entry for entry in entries if selected is None or entry.name in selected]
        for entry in chosen:
            if not synonyms:
                entry.synonyms = []
            if not documentation:
                entry.documentation = None
        return chosen

    def topic_entries(self, own: dict[str, str]) -> list[DescribeConfigsResourceResult]:
        """The configs of a topic on which `own` is set, sorted by name."""
        inherited = self._settings.topic_defaults()
        entries = []
        for name, key in sorted(self._schema.keys[TOPIC].items()):
            layers = self._synonym_layers(name)
            if name in own:
                layers.insert(0, (source.DYNAMIC_TOPIC_CONFIG, name, own[name]))
            value = own.get(name, inherited.get(name, key.format(key.default)))
            entries.append(_entry(key, value, layers, read_only=False))
        return entries

    def _synonym_layers(self, topic_key: str) -> list[tuple[int, str, str]]:
        synonyms = self._schema.topic_synonyms.get(topic_key, ())
        return self._broker_layers(synonyms[0][0]) if synonyms else []

    def _broker_layers(self, name: str) -> list[tuple[int, str, str]]:
        """(source, key, value) of a broker key and its synonyms, by precedence.

        Synonyms before the key itself are left out, as in Kafka: `log.retention.ms`, when it is not set, has no
        layers although `log.retention.hours` has a default.
        """
        layers = [
            (origin, synonym, text)
            for synonym in BROKER_SYNONYMS.get(name, (name,))
            for origin, text in self._settings.text_layers(synonym)
        ]
        layers.sort(key=lambda layer: layer[0])
        while layers and layers[0][1] != name:
            layers.pop(0)
        return layers

    def _broker_entries(self, name: str) -> list[DescribeConfigsResourceResult]:
        schema = self._schema
        keys = schema.keys[BROKER]
        if name:
            return [
                _entry(key, self._broker_value(config), self._broker_layers(config), read_only=schema.is_read_only(key))
                for config, key in sorted(keys.items())
                if config not in schema.unlisted or self._is_set(config)
            ]
        entries = []
        for config, value in sorted(self._image.config(BROKER, "").items()):
            if config not in keys:  # of a listener that there is no longer
                continue
            layers = [(source.DYNAMIC_DEFAULT_BROKER_CONFIG, config, value)]
            entries.append(_entry(keys[config], value, layers, read_only=schema.is_read_only(keys[config])))
        return entries

    def _is_set(self, name: str) -> bool:
        return any(origin != source.DEFAULT_CONFIG for origin, _ in self._settings.text_layers(name))

    def _broker_value(self, name: str) -> str | None:
        layers = self._settings.text_layers(name)
        return layers[0][1] if layers else None

    def _own_entries(self, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
        """The configs of a group or client metrics subscription, the defaults included."""
        own = self._image.config(kind, name)
        own_source = source.GROUP_CONFIG if kind == GROUP else source.CLIENT_METRICS_CONFIG
        entries = []
        for config, key in sorted(self._schema.keys[kind].items()):
            synonym = self._schema.group_synonym(config) if kind == GROUP else None
            layers = self._broker_layers(synonym) if synonym else []
            default = layers[0][2] if layers else key.format(key.default)
            if not layers and default is not None:
                layers = [(source.DEFAULT_CONFIG, config, default)]
            if config in own:
                layers.insert(0, (own_source, config, own[config]))
            entry = _entry(key, own.get(config, default), layers, read_only=False)
            if kind != GROUP and config not in own:
                entry.synonyms = []  # as in Kafka: a default of client metrics is no synonym
            entries.append(entry)
        return entries

    def _check_topic(self, name: str) -> None:
        check_topic_name(name)
        if name not in self._image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _check_broker(self, name: str) -> None:
        if name and not name.lstrip("+-").isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
        if name and int(name) != self._node_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {self._node_id} or empty string, but received {name}",
            )


def _entry(
    key: ConfigKey[Any], value: str | None, layers: Iterable[tuple[int, str, str]], *, read_only: bool
) -> DescribeConfigsResourceResult:
    shown = [
        DescribeConfigsSynonym(name=name, value=None if key.is_sensitive else text, source=origin)
        for origin, name, text in layers
    ]
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if key.is_sensitive else value,
        read_only=read_only,
        config_source=shown[0].source if shown else source.DEFAULT_CONFIG,
        is_sensitive=key.is_sensitive,
        synonyms=shown,
        config_type=CONFIG_TYPES[key.type],
        documentation=key.doc if key.used else f"{key.doc} {NOT_ACTED_ON}",
    )
