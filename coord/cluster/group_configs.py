"""What the configs of a group may be: types, and the limits that the broker's `group.*.min/max.*` keys set.

Source: Kafka 4.4 `GroupConfig.validate`. A group's configs are judged together, those that are set already included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.coord.groups.settings import parse_auto_offset_reset
from barnabas.wire.configdef import ConfigError, ConfigKey

DEADLETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
ASSIGNOR_NAME: Final = "streams.assignor.name"
ASSIGNMENT_TAGS: Final = "streams.rack.aware.assignment.tags"

BrokerValue = Callable[[ConfigKey[Any]], Any]
"""The value in force of a broker key."""


class GroupLimits(NamedTuple):
    """The broker keys behind a group's key: what gives its default, and what bounds it."""

    default: ConfigKey[Any]
    lowest: ConfigKey[int] | None = None
    highest: ConfigKey[int] | None = None

    def clamped(self, value: int, of_broker: BrokerValue) -> int:
        """The nearest value that the broker allows now: limits may have moved since the group's was set."""
        if self.lowest is not None:
            value = max(value, of_broker(self.lowest))
        return value if self.highest is None else min(value, of_broker(self.highest))


def check_group_configs(values: Mapping[str, Any], limits: Mapping[str, GroupLimits], of_broker: BrokerValue) -> None:
    """Check the parsed configs of a group against the broker's limits; ConfigError with Kafka's sentence."""
    for name, bounds in limits.items():
        if name in values:
            _check_bounds(name, values[name], bounds, of_broker)
    if ASSIGNOR_NAME in values:
        registered = of_broker(limits[ASSIGNOR_NAME].default)
        if values[ASSIGNOR_NAME] not in registered:
            raise ConfigError(
                f"{ASSIGNOR_NAME} '{values[ASSIGNOR_NAME]}' is not a registered task assignor. "
                f"Registered assignors are: [{', '.join(registered)}]."
            )
    for kind in ("consumer", "share", "streams"):
        _check_session(f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms", values, limits, of_broker)
    if values.get(DEADLETTER_TOPIC, "").startswith("__"):
        raise ConfigError(f"{DEADLETTER_TOPIC}: DLQ topic name must not start with '__'")


def _check_bounds(name: str, value: Any, bounds: GroupLimits, of_broker: BrokerValue) -> None:
    low = None if bounds.lowest is None else of_broker(bounds.lowest)
    high = None if bounds.highest is None else of_broker(bounds.highest)
    if low is not None and high is not None:
        if not low <= value <= high:
            raise ConfigError(f"{name} must be in the range {low} to {high} inclusive.")
    elif high is not None and value > high:
        raise ConfigError(f"{name} must be less than or equal to {high}")


def _check_session(
    session: str, heartbeat: str, values: Mapping[str, Any], limits: Mapping[str, GroupLimits], of_broker: BrokerValue
) -> None:
    """A session must outlast the interval of heartbeats, where the group says anything of either."""
    if (session in values or heartbeat in values) and {session, heartbeat} <= limits.keys():
        lasts, interval = (
            values[name] if name in values else of_broker(limits[name].default) for name in (session, heartbeat)
        )
        if lasts <= interval:
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def check_group_text(name: str, text: str) -> None:
    """Check what a key's type does not tell; ConfigError with Kafka's sentence."""
    if name == AUTO_OFFSET_RESET:
        try:
            parse_auto_offset_reset(text.strip())
        except ValueError:
            raise ConfigError(
                f"Invalid value {text} for configuration {name}: Invalid value `{text}` for configuration {name}. The "
                "value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
            ) from None
    elif name == ASSIGNMENT_TAGS and text.strip():
        tags = [tag.strip() for tag in text.split(",")]
        if len(set(tags)) < len(tags):
            raise ConfigError(f"{ASSIGNMENT_TAGS} must not contain duplicate tag keys.")
