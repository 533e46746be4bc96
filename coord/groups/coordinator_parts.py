"""What a group type gets from its coordinator; apart from `group`, which all of these parts import."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.coord.groups.classic.rebalance import Rebalance
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.timers import Timers


class CoordinatorParts(NamedTuple):
    """What a group type gets from the coordinator that it belongs to."""

    groups: dict[str, Group]
    """The groups of all types, by id."""
    timers: Timers
    topics: Topics
    config: GroupConfig
    group_configs: GroupConfigs
    new_id: Callable[[], str]
    """Returns a new random text, the end of a member id."""
    rebalance: Rebalance
    """Serves the groups that become classic ones."""
