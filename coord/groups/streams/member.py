"""One member of a streams group, an immutable value: its metadata and its assignment.

A member is one thread of an application; threads of one process share its process id, and the state on its disk.
Metadata and assignment have their own records. Invariants: in one role a task is in `assigned` or in `revoking` and
never in both; only an UNREVOKED member has any in `revoking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.coord.groups.limits import held_bytes
from barnabas.coord.groups.modern.members import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.groups.streams.tasks import HeldTasks


class Endpoint(NamedTuple):
    """Where a process answers queries of its state."""

    host: str
    port: int


class StreamsMember(NamedTuple):
    """A member at one moment."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """The epoch before, which the member has if the last response was lost."""
    state: MemberState = MemberState.STABLE
    assigned: HeldTasks = HeldTasks()
    """The tasks assigned to it."""
    revoking: HeldTasks = HeldTasks()
    """The tasks that it has to revoke first."""

    @property
    def held_bytes(self) -> int:
        """The bytes of what the member has sent."""
        return held_bytes((self.client_tags, self.user_endpoint, self.process_id, self.rack_id))

    @property
    def has_to_revoke(self) -> bool:
        """Whether it must confirm within its rebalance timeout that it has revoked tasks."""
        return self.state is MemberState.UNREVOKED

    def has_metadata_of(self, other: StreamsMember) -> bool:
        """Whether the metadata of both, the fields up to `client_tags`, are equal."""
        return self[:_METADATA_FIELDS] == other[:_METADATA_FIELDS]

    def is_assigned_like(self, other: StreamsMember) -> bool:
        """Whether both are equal in all that an assignment depends on."""
        return (self.topology_epoch, self.rack_id, self.client_tags, self.process_id) == (
            other.topology_epoch,
            other.rack_id,
            other.client_tags,
            other.process_id,
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all that the target assignment of this epoch gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def speaks_classic(self) -> bool:
        """Never."""
        return False

    def back_as(self, member_id: str) -> StreamsMember:
        """This static member when it joins again, usually with a new member id."""
        return self._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)

    def away(self) -> StreamsMember:
        """This static member when it has left temporarily: its tasks are kept, from epoch 0 on."""
        return self._replace(epoch=STATIC_LEAVE_EPOCH, assigned=self.assigned.from_epoch_zero(), revoking=HeldTasks())

    def entered(self, epoch: int) -> StreamsMember:
        """The member in its next epoch."""
        return self._replace(previous_epoch=self.epoch, epoch=epoch)


_METADATA_FIELDS = StreamsMember._fields.index("epoch")
