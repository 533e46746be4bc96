"""The broker configuration of a group coordinator."""

from __future__ import annotations

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


class GroupConfig:
    """The `group.*` and `offset.*` keys; the values are the defaults."""

    __slots__ = (
        "consumer_assignors",
        "consumer_max_size",
        "consumer_migration_policy",
        "group_max_bytes",
        "hides_topics",
        "initial_rebalance_delay_ms",
        "max_groups",
        "max_members",
        "max_session_timeout_ms",
        "max_size",
        "member_max_bytes",
        "min_session_timeout_ms",
        "new_member_join_timeout_ms",
        "offset_metadata_max_bytes",
        "offsets_retention_ms",
        "share_max_size",
        "streams_max_size",
    )

    def __init__(
        self,
        *,
        min_session_timeout_ms: int = 6_000,
        max_session_timeout_ms: int = 1_800_000,
        initial_rebalance_delay_ms: int = 3_000,
        max_size: int = 2**31 - 1,
        consumer_max_size: int = 2**31 - 1,
        consumer_assignors: tuple[str, ...] = ("uniform", "range"),
        consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL,
        share_max_size: int = 200,
        streams_max_size: int = 2**31 - 1,
        offset_metadata_max_bytes: int = 4096,
        offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000,
        new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS,
        max_groups: int = 100_000,
        max_members: int = 20_000,
        member_max_bytes: int = 1 << 20,
        group_max_bytes: int = 32 << 20,
        hides_topics: bool = False,
    ) -> None:
        """`hides_topics`: members see only some topics (`ClientContext.may_describe`).

        `max_groups`, `max_members`, `member_max_bytes` and `group_max_bytes` are Barnabas' own, see `limits.py`.
        """
        self.hides_topics = hides_topics
        self.max_groups = max_groups
        self.max_members = max_members
        self.member_max_bytes = member_max_bytes
        self.group_max_bytes = group_max_bytes
        self.consumer_assignors = consumer_assignors
        self.consumer_max_size = consumer_max_size
        self.consumer_migration_policy = consumer_migration_policy
        self.min_session_timeout_ms = min_session_timeout_ms
        self.max_session_timeout_ms = max_session_timeout_ms
        self.initial_rebalance_delay_ms = initial_rebalance_delay_ms
        self.max_size = max_size
        self.offset_metadata_max_bytes = offset_metadata_max_bytes
        self.offsets_retention_ms = offsets_retention_ms
        self.share_max_size = share_max_size
        self.streams_max_size = streams_max_size
        self.new_member_join_timeout_ms = new_member_join_timeout_ms
