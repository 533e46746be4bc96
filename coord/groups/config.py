"""The broker configuration of a group coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long the JoinGroup of a new member may be parked (fixed in Kafka, too: five minutes)."""


class MigrationPolicy(Enum):
    """Which protocol a group with members may be converted to (`group.consumer.migration.policy`)."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """From classic to consumer."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """From consumer to classic."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(kw_only=True, slots=True, eq=False, repr=False)
class GroupConfig:
    """The `group.*` and `offset.*` keys; the values are the defaults."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    share_max_size: int = 200
    streams_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS
    # these are Barnabas' own, see `limits.py`
    max_groups: int = 100_000
    max_members: int = 20_000
    member_max_bytes: int = 1 << 20
    group_max_bytes: int = 32 << 20
    hides_topics: bool = False
    """Whether members see only some topics (`ClientContext.may_describe`)."""
