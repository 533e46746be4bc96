"""Effective settings of groups: a group's dynamic configs over the broker's defaults (KIP-848, KIP-932, KIP-1071).

A group's value is clamped to the broker's current limits (`group_limits`), with a warning in the log. Settings are
computed on first use and cached until a config changes, so that a lookup is one dictionary access.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.config.group_limits import LIMITS
from barnabas.broker.config.keys.resources import GROUP_KEYS
from barnabas.coord.auto_offset_reset import parse_auto_offset_reset
from barnabas.coord.cluster.changes.group_configs import ASSIGNOR_NAME, AUTO_OFFSET_RESET
from barnabas.coord.cluster.resources import BROKER, GROUP
from barnabas.coord.groups.settings import GroupSettings

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage

logger = logging.getLogger("kafka.coordinator.GroupConfig")


class GroupConfigs:
    """Returns the effective settings of a group by its id."""

    def __init__(self, config: ServerConfig, image: Callable[[], ClusterImage]) -> None:
        """`image` returns the current metadata image."""
        self._config = config
        self._image = image
        self._own: dict[str, GroupSettings] = {}
        self._default: GroupSettings | None = None
        self._of_all: GroupSettings | None = None  # the settings of every group, if none has configs of its own
        self.on_change: list[Callable[[str], None]] = []
        """Called with a group id after a change of the group's configs has taken effect."""

    def __call__(self, group_id: str) -> GroupSettings:
        """The settings of a group, whether it exists or not."""
        if self._of_all is not None:
            return self._of_all
        settings = self._own.get(group_id)
        if settings is not None:
            return settings
        configs = self._image().configs
        own = configs.get((GROUP, group_id))
        if own:
            settings = self._own[group_id] = self._settings(group_id, own)
            return settings
        if self._default is None:
            self._default = self._settings(group_id, {})
        if not any(kind == GROUP for kind, _ in configs):
            self._of_all = self._default
        return self._default

    def apply(self, delta: ClusterDelta) -> None:
        """Apply a metadata change."""
        self._of_all = None
        if any(kind == BROKER for kind, _ in delta.changed_configs):
            self._own.clear()
            self._default = None
        for kind, name in delta.changed_configs:
            if kind == GROUP:
                self._own.pop(name, None)
                for listener in self.on_change:
                    listener(name)

    def _settings(self, group_id: str, own: dict[str, str]) -> GroupSettings:
        values = {name: self._value(group_id, name, own.get(name)) for name in GROUP_KEYS}
        for kind in ("consumer", "share", "streams"):
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            if (session in own or heartbeat in own) and values[session] <= values[heartbeat]:
                logger.warning(
                    "The %s of group %r is %d, not greater than its %s %d: check the broker's limits of both",
                    session,
                    group_id,
                    values[session],
                    heartbeat,
                    values[heartbeat],
                )
        return GroupSettings(**{name.replace(".", "_"): value for name, value in values.items()})

    def _value(self, group_id: str, name: str, text: str | None) -> Any:
        limits = LIMITS.get(name)
        config = self._config
        if text is None:
            value = GROUP_KEYS[name].default if limits is None else config[limits.default]
            if name == ASSIGNOR_NAME:
                return value[0]
        else:
            value = GROUP_KEYS[name].parse(text)
        if name == AUTO_OFFSET_RESET:
            return parse_auto_offset_reset(value)
        if text is None or limits is None or (limits.lowest is None and limits.highest is None):
            return value
        allowed = limits.clamped(value, config.__getitem__)
        if allowed != value:
            logger.warning(
                "%s=%s of group %r is outside the broker's limits: %d is used", name, value, group_id, allowed
            )
        return allowed
