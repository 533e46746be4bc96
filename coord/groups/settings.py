"""The effective settings of one group: its own configs, or else the broker's (KIP-848, KIP-932, KIP-1071).

Coordinators get a `GroupConfigs`, a callable from a group's id to its settings, and call it whenever they need a
setting, so that a change is effective with the next request. The defaults are Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.coord.auto_offset_reset import AutoOffsetReset


class GroupSettings(NamedTuple):
    """The settings of one group; a field has the name of its config key, with `_` for dots."""

    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_assignment_interval_ms: int = 1_000
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5_000
    share_assignment_interval_ms: int = 1_000
    share_record_lock_duration_ms: int = 30_000
    share_delivery_count_limit: int = 5
    share_partition_max_record_locks: int = 2_000
    share_auto_offset_reset: AutoOffsetReset = AutoOffsetReset()
    share_isolation_level: str = "read_uncommitted"
    share_renew_acknowledge_enable: bool = True
    streams_session_timeout_ms: int = 45_000
    streams_heartbeat_interval_ms: int = 5_000
    streams_assignment_interval_ms: int = 1_000
    streams_initial_rebalance_delay_ms: int = 3_000
    streams_num_standby_replicas: int = 0
    streams_rack_aware_assignment_tags: tuple[str, ...] = ()
    streams_assignor_name: str = "sticky"
    errors_deadletterqueue_topic_name: str = ""
    """Topic for records that could not be delivered; empty: such records are dropped."""
    errors_deadletterqueue_copy_record_enable: bool = False


GroupConfigs = Callable[[str], GroupSettings]
"""Returns the effective settings of a group, by its id."""


def default_group_configs(_group_id: str) -> GroupSettings:
    """Kafka's defaults for every group."""
    return GroupSettings()
