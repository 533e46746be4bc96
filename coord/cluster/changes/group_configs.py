"""Validation of a group's configs against the broker's `group.*.min/max.*` keys.

All configs of a group are validated together, also the configs that are set already. Source: Kafka 4.4
`GroupConfig.validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.coord.auto_offset_reset import parse_auto_offset_reset
from barnabas.wire.configdef import ConfigError, ConfigKey

DEADLETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
ASSIGNOR_NAME: Final = "streams.assignor.name"
ASSIGNMENT_TAGS: Final = "streams.rack.aware.assignment.tags"

BrokerValue = Callable[[ConfigKey[Any]], Any]
"""Returns the effective value of a broker key."""


class GroupLimits(NamedTuple):
    """The broker keys with the default, minimum and maximum of a group's key."""

    default: ConfigKey[Any]
    lowest: ConfigKey[int] | None = None
    highest: ConfigKey[int] | None = None

    def clamped(self, value: int, value_of: BrokerValue) -> int:
        """The nearest value that the broker allows now: the limits may have changed after the value was set."""
        if self.lowest is not None:
            value = max(value, value_of(self.lowest))
        return value if self.highest is None else min(value, value_of(self.highest))


def check_group_configs(values: Mapping[str, Any], limits: Mapping[str, GroupLimits], value_of: BrokerValue) -> None:
    """Check the parsed configs of a group against the broker's limits; ConfigError with Kafka's message."""
    for name, bounds in limits.items():
        if name in values:
            _check_bounds(name, values[name], bounds, value_of)
    if ASSIGNOR_NAME in values:
        registered = value_of(limits[ASSIGNOR_NAME].default)
        if values[ASSIGNOR_NAME] not in registered:
            raise ConfigError(
                f"{ASSIGNOR_NAME} '{values[ASSIGNOR_NAME]}' is not a registered task assignor. "
                f"Registered assignors are: [{', '.join(registered)}]."
            )
    for kind in ("consumer", "share", "streams"):
        _check_session(f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms", values, limits, value_of)
    if values.get(DEADLETTER_TOPIC, "").startswith("__"):
        raise ConfigError(f"{DEADLETTER_TOPIC}: DLQ topic name must not start with '__'")


def _check_bounds(name: str, value: Any, bounds: GroupLimits, value_of: BrokerValue) -> None:
    low = None if bounds.lowest is None else value_of(bounds.lowest)
    high = None if bounds.highest is None else value_of(bounds.highest)
    if low is not None and high is not None:
        if not low <= value <= high:
            raise ConfigError(f"{name} must be in the range {low} to {high} inclusive.")
    elif high is not None and value > high:
        raise ConfigError(f"{name} must be less than or equal to {high}")


def _check_session(
    session: str,
    heartbeat: str,
    values: Mapping[str, Any],
    limits: Mapping[str, GroupLimits],
    value_of: BrokerValue,
) -> None:
    """The session timeout must exceed the heartbeat interval, if the group sets one of the two."""
    if (session in values or heartbeat in values) and {session, heartbeat} <= limits.keys():
        timeout, interval = (
            values[name] if name in values else value_of(limits[name].default) for name in (session, heartbeat)
        )
        if timeout <= interval:
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def check_group_text(name: str, text: str) -> None:
    """Check a value beyond the type of its key; ConfigError with Kafka's message."""
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
