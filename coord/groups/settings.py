"""The settings in force of one group: its own configs over the broker's (KIP-848, KIP-932, KIP-1071).

The coordinators are given a `GroupConfigs`, a callable from a group's id to its settings, and ask it whenever they need
one: a change holds from the next request on. The defaults here are Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

BY_DURATION: Final = "by_duration"

_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


class AutoOffsetReset(NamedTuple):
    """Where a share group starts in a partition that it has no position in."""

    strategy: str = "latest"
    """`earliest`, `latest` or `by_duration`."""
    duration_ms: int = 0
    """How far back, for `by_duration`."""


def parse_auto_offset_reset(text: str) -> AutoOffsetReset:
    """Read `earliest`, `latest` or `by_duration:PnDTnHnMn.nS`; ValueError for anything else."""
    if text in {"earliest", "latest"}:
        return AutoOffsetReset(text)
    strategy, _, duration = text.partition(":")
    if strategy != BY_DURATION:
        raise ValueError(f"{text!r} is no strategy")
    return AutoOffsetReset(BY_DURATION, _parse_duration_ms(duration))


def _parse_duration_ms(text: str) -> int:
    """A duration as Java's `Duration.parse` reads it, not below zero; ValueError when it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or text.upper().endswith(("P", "T")):
        raise ValueError(f"{text!r} is no duration")
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    milliseconds = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    part_ms = int((fraction or "").ljust(9, "0")) // 1_000_000
    milliseconds += int(seconds or 0) * 1000 + (-part_ms if (seconds or "").startswith("-") else part_ms)
    if sign == "-":
        milliseconds = -milliseconds
    if not 0 <= milliseconds < 1 << 63:
        raise ValueError(f"{text!r} is no duration")
    return milliseconds


class GroupSettings(NamedTuple):
    """What holds for one group; a field is named as its config key, with `_` for dots."""

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
    """Topic for records that could not be delivered; empty: they are dropped."""
    errors_deadletterqueue_copy_record_enable: bool = False


GroupConfigs = Callable[[str], GroupSettings]
"""Gives the settings in force of a group, by its id."""


def default_group_configs(_group_id: str) -> GroupSettings:
    """Kafka's defaults for every group."""
    return GroupSettings()
