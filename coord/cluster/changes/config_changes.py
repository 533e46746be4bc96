"""AlterConfigs and IncrementalAlterConfigs: validates changes and returns them as records.

Either all changes of a resource are applied or none. Source: Kafka 4.4 `ConfigurationControlManager`,
`ControllerConfigurationValidator`, `DynamicBrokerConfig.validate`, `ConfigAdminManager`. KIP-133, KIP-226, KIP-339.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.coord.cluster.changes.config_schema import BrokerSettings, ConfigSchema, Keys
from barnabas.coord.cluster.changes.group_configs import check_group_configs, check_group_text
from barnabas.coord.cluster.changes.topic_settings import MIN_INSYNC_REPLICAS
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.node_records import ELR_FEATURE
from barnabas.coord.cluster.resources import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigResource
from barnabas.coord.topic_names import check_topic_name
from barnabas.wire.configdef import LIST, PER_BROKER, ConfigError, ConfigKey, format_value, parse_list
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import ConfigRecord


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One operation on one key."""

    name: str
    operation: int
    value: str | None


class ConfigChanges:
    """Validates changes against the schema and returns them as records."""

    def __init__(
        self,
        image: ClusterImage,
        schema: ConfigSchema,
        settings: BrokerSettings,
        node_id: int,
        *,
        any_broker: bool = False,
    ) -> None:
        """`any_broker`: configs of every registered broker are changed here, not only this node's."""
        self._any_broker = any_broker
        self._image = image
        self._schema = schema
        self._settings = settings
        self._node_id = node_id

    def replace(self, resource: ConfigResource, configs: Iterable[tuple[str, str | None]]) -> list[ConfigRecord]:
        """Records that replace all configs of a resource (AlterConfigs); KafkaError when they are invalid."""
        pairs = list(configs)
        _check_distinct([name for name, _ in pairs])
        _check_not_null(name for name, value in pairs if value is None)
        requested = {name: value for name, value in pairs if value is not None}
        return self._records(resource, requested, named=set(requested))

    def apply(self, resource: ConfigResource, changes: Iterable[Change]) -> list[ConfigRecord]:
        """Records for changes of single keys (IncrementalAlterConfigs); KafkaError when one of them is invalid."""
        changes = list(changes)
        if resource[0] not in {TOPIC, BROKER, GROUP, CLIENT_METRICS}:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource[0]}")
        if resource[0] == BROKER and not self._any_broker:
            self._check_is_this_broker(resource[1])
        requested = dict(self._image.config(*resource))
        names = [change.name for change in changes]
        _check_distinct(names)
        for change in changes:
            value = self._changed(resource, requested, change)
            if value is None:
                requested.pop(change.name, None)
            else:
                requested[change.name] = value
        return self._records(resource, requested, named={name for name in names if name in requested})

    def _changed(self, resource: ConfigResource, current: Mapping[str, str], change: Change) -> str | None:
        if change.operation == Operation.DELETE:
            return None
        if change.operation not in set(Operation):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {change.operation}")
        if change.value is None:
            _check_not_null([change.name])
        assert change.value is not None
        if change.operation == Operation.SET:
            return change.value
        key = self._schema.keys.get(resource[0], {}).get(change.name)
        if resource[0] not in {TOPIC, BROKER} or key is None or key.type != LIST:  # as in Kafka
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {Operation(change.operation).name} to key {change.name} because its type is not LIST.",
            )
        old = parse_list(current[key.name] if key.name in current else self._inherited(resource, key))
        items = parse_list(change.value)
        if change.operation == Operation.APPEND:
            return format_value(tuple(dict.fromkeys((*old, *items))))
        return format_value(tuple(item for item in old if item not in items))

    def _inherited(self, resource: ConfigResource, key: ConfigKey[Any]) -> str:
        """The value of a key that is not set on the resource."""
        if resource[0] == TOPIC:
            inherited = self._settings.topic_defaults().get(key.name)
            return inherited if inherited is not None else key.format(key.default) or ""
        layers = self._settings.text_layers(key.name) if resource[0] == BROKER else []
        return layers[0][1] if layers else key.format(key.default) or ""

    def _records(self, resource: ConfigResource, requested: dict[str, str], named: set[str]) -> list[ConfigRecord]:
        """Validate the new configs; the records for the difference to the current ones."""
        self.check(resource, requested, named)
        kind, name = resource
        current = self._image.config(kind, name)
        changed = [key for key, value in requested.items() if current.get(key) != value]
        removed = [key for key in current if key not in requested]
        return [
            ConfigRecord(resource_type=kind, resource_name=name, name=key, value=requested.get(key))
            for key in changed + removed
        ]

    def check(self, resource: ConfigResource, requested: Mapping[str, str], named: set[str]) -> None:
        """Check that a resource exists and may have these configs; `named` are the keys in the request."""
        kind, name = resource
        if kind == TOPIC:
            self._check_topic(name, requested)
        elif kind == BROKER:
            self._check_broker(name, requested, named)
        elif kind == GROUP:
            _check_name(name, "Default group resources are not allowed.")
            self._check_group(requested)
        elif kind == CLIENT_METRICS:
            _check_name(name, "Subscription name can't be empty")
            self._check_client_metrics(requested)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")

    def _check_topic(self, name: str, requested: Mapping[str, str]) -> None:
        _check_name(name, "Default topic resources are not allowed.")
        check_topic_name(name)
        self.check_topic_configs(requested)
        if name not in self._image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")

    def check_topic_configs(self, requested: Mapping[str, str]) -> None:
        """Check the configs of an existing or new topic; KafkaError(INVALID_CONFIG)."""
        _parse_all(self._schema.keys[TOPIC], requested, "topic")
        try:
            self._schema.check_topic(requested, self._settings.topic_defaults())
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def _check_group(self, requested: Mapping[str, str]) -> None:
        values = _parse_all(self._schema.keys[GROUP], requested, "group")
        try:
            for name, text in requested.items():
                check_group_text(name, text)
            check_group_configs(values, self._schema.group_limits, self._broker_value)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def _check_client_metrics(self, requested: Mapping[str, str]) -> None:
        from barnabas.coord.client_metrics.subscriptions import INTERVAL_MS, MATCH, check_values

        keys = self._schema.keys[CLIENT_METRICS]
        unknown = next((name for name in requested if name not in keys), None)
        if unknown is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {unknown}")
        values = _parse_all(keys, requested, "client metrics")
        empty = next((name for name, value in values.items() if isinstance(value, tuple) and "" in value), None)
        if empty is not None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Configuration '{empty}' values must not be empty.")
        check_values(values.get(INTERVAL_MS), values.get(MATCH))

    def _broker_value(self, key: ConfigKey[Any]) -> Any:
        layers = self._settings.text_layers(key.name)
        return key.parse(layers[0][1]) if layers else key.default

    def _check_broker(self, name: str, requested: Mapping[str, str], named: set[str]) -> None:
        if self._any_broker:
            self._check_broker_exists(name)
        else:
            self._check_is_this_broker(name)
        keys = self._schema.keys[BROKER]
        touched = sorted(named | set(requested))
        unknown = [config for config in touched if config not in keys]
        if unknown:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown broker config name: {', '.join(unknown)}")
        fixed = [config for config in touched if self._schema.is_read_only(keys[config])]
        if fixed:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
            )
        own = [config for config in touched if keys[config].dynamic == PER_BROKER]
        if own and not name:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Cannot update these configs at default cluster level, broker configs must be dynamically "
                f"updated at the broker level: [{', '.join(own)}]",
            )
        self._check_min_isr(name, requested)
        values = _parse_all(keys, requested, "broker", ErrorCode.INVALID_REQUEST)
        try:
            self._schema.check_broker(values)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error

    def _check_is_this_broker(self, name: str) -> None:
        if not name or name == str(self._node_id):
            return
        if not name.isascii() or not name.isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        reason = f"Unexpected broker id, expected {self._node_id}, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)

    def _check_broker_exists(self, name: str) -> None:
        if not name or name == str(self._node_id):
            return
        if not name.isascii() or not name.isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
        if int(name) not in self._image.brokers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")

    def _check_min_isr(self, name: str, requested: Mapping[str, str]) -> None:
        """With ELR min.insync.replicas is the same on all brokers (KIP-966)."""
        if not self._image.features.get(ELR_FEATURE):
            return
        had = MIN_INSYNC_REPLICAS in self._image.config(BROKER, name)
        if name and MIN_INSYNC_REPLICAS in requested:
            reason = f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        if not name and had and MIN_INSYNC_REPLICAS not in requested:
            reason = f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)


def _check_distinct(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_not_null(names: Iterable[str]) -> None:
    """KafkaError if there are names: those of keys without a value."""
    if text := ",".join(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {text}")


def _check_name(name: str, message: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _parse_all(
    keys: Keys, requested: Mapping[str, str], what: str, code: ErrorCode = ErrorCode.INVALID_CONFIG
) -> dict[str, Any]:
    values = {}
    unknown = next((name for name in requested if name not in keys), None)
    if unknown is not None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown {what} config name: {unknown}")
    for name, value in requested.items():
        try:
            values[name] = keys[name].parse(value)
        except ConfigError as error:
            raise KafkaError(code, str(error)) from error
    return values
