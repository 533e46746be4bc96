"""What a test makes a group and its coordinator go through: rebalances, lost members, fencing, a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.testing.durations import Amount, seconds_of
from barnabas.testing.forms import operation

if TYPE_CHECKING:
    from barnabas.testing.link import Link

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""


class HasId(Protocol):
    """A `Member` of a group."""

    @property
    def id(self) -> str:
        """Its member id."""


class GroupChoreography:
    """What can be done to a group. Its members learn of it when they speak to the coordinator next."""

    name: str
    _link: Link

    @operation
    def rebalance(self) -> int:
        """Have every member join again; how many there are.

        Members of a classic group see REBALANCE_IN_PROGRESS; those of the other protocols are removed, and join anew.
        """
        count: int = self._link.perform("rebalance", {"group": self.name})["members"]
        return count

    @operation
    def expire(self, member: HasId | str | None = None) -> list[str]:
        """End the session of a member (its id or instance id), or of all; the ids of those who are removed."""
        member_id = member if member is None or isinstance(member, str) else member.id
        removed: list[str] = self._link.perform("expire_member", {"group": self.name, "member": member_id})["members"]
        return removed

    @operation
    def fence(self, instance_id: str) -> None:
        """Fence a static member: another takes its instance id, and does nothing until its session ends (45 s)."""
        self._link.perform("fence_instance", {"group": self.name, "instance": instance_id})

    @operation
    def reload(self, loading: Amount = 0) -> None:
        """Have the coordinator unloaded and loaded again from its log, as when it moves.

        Clients that wait get NOT_COORDINATOR, and for as long as `loading` COORDINATOR_LOAD_IN_PROGRESS; that
        goes by the cluster's clock, so that a test with a frozen one ends it by `clock.advance`.
        """
        self._link.perform("reload_coordinator", {"group": self.name, "seconds": seconds_of(loading)})
