"""One member of a consumer group, an immutable value: its metadata and its assignment.

Each of the two has its own record. Invariants: `assigned` and `revoking` have no partition in common; a partition's
number in them is the epoch in which the member got it (KIP-1251); only an UNREVOKED member has partitions in
`revoking`. `classic` is set for members that use the classic protocol in a consumer group (rule G4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.limits import held_bytes
from barnabas.coord.groups.modern.members import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coord.groups.modern.states import MemberState
from barnabas.wire.types import Uuid

if TYPE_CHECKING:
    from barnabas.wire.messages.records.coordinator_records import ClassicMemberMetadata

OwnedPartitions = dict[Uuid, dict[int, int]]
"""By topic id and partition: the epoch in which the member got it."""


class ConsumerMember(NamedTuple):
    """A member at one moment."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str | None = None
    assignor: str | None = None
    """The server-side assignor that it prefers."""
    classic: ClassicMemberMetadata | None = None

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """The epoch before, which the member has if the last response was lost."""
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = {}  # noqa: RUF012 - never changed in place
    """The partitions assigned to it."""
    revoking: OwnedPartitions = {}  # noqa: RUF012
    """The partitions that it has to revoke first."""

    @property
    def held_bytes(self) -> int:
        """The bytes of what the member has sent."""
        return held_bytes((self.subscribed_topics, self.subscribed_regex, self.rack_id, self.classic))

    @property
    def speaks_classic(self) -> bool:
        """Whether it uses JoinGroup, SyncGroup and Heartbeat."""
        return self.classic is not None

    @property
    def has_to_revoke(self) -> bool:
        """Whether it must confirm within its rebalance timeout that it has revoked partitions."""
        return self.state is MemberState.UNREVOKED and not self.speaks_classic

    def has_metadata_of(self, other: ConsumerMember) -> bool:
        """Whether the metadata of both, the fields up to `classic`, are equal."""
        return self[:_METADATA_FIELDS] == other[:_METADATA_FIELDS]

    @property
    def holds(self) -> dict[Uuid, frozenset[int]]:
        """All partitions that it may be reading, including those to revoke."""
        held = {topic_id: frozenset(owned) for topic_id, owned in self.assigned.items()}
        for topic_id, owned in self.revoking.items():
            held[topic_id] = held.get(topic_id, frozenset()) | frozenset(owned)
        return held

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all that the target assignment of this epoch gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def back_as(self, member_id: str) -> ConsumerMember:
        """This static member when it joins again, usually with a new member id."""
        return self._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)

    def away(self) -> ConsumerMember:
        """This static member when it has left temporarily: its assignment is kept, from epoch 0 on (KIP-1251)."""
        assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in self.assigned.items()}
        return self._replace(epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking={})

    def entered(self, epoch: int) -> ConsumerMember:
        """The member in its next epoch."""
        return self._replace(previous_epoch=self.epoch, epoch=epoch)


_METADATA_FIELDS = ConsumerMember._fields.index("epoch")


def has(owned: OwnedPartitions, topic_id: Uuid, partition: int) -> bool:
    """Whether the partition is among them."""
    return partition in owned.get(topic_id, ())
