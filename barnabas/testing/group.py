"""A group of a cluster, of any type: its committed offsets, its members, and waits for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.testing.clock import Amount, seconds_of
from barnabas.testing.forms import Async, Sync, operation

if TYPE_CHECKING:
    from barnabas.testing.link import Link

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""


class HasId(Protocol):
    """A `Member` of a group."""

    @property
    def id(self) -> str:
        """Its member id."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, and the partitions that it is assigned, by topic."""

    id: str
    instance_id: str | None
    client_id: str
    assignment: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group at one moment. `offsets` are the committed ones (of a share group: where it starts), by partition."""

    type: str
    state: str
    members: list[Member]
    offsets: dict[tuple[str, int], int]
    lag: dict[tuple[str, int], int]

    def __str__(self) -> str:
        if not self.type and not self.offsets:
            return "there is no such group"
        members = [
            f"{member.client_id} ({member.id}) has {member.assignment or 'nothing'}" for member in self.members
        ] or ["no members"]
        offsets = [
            f"{topic}-{partition}: {offset}, lag {self.lag.get((topic, partition), '?')}"
            for (topic, partition), offset in self.offsets.items()
        ] or ["no committed offsets"]
        return f"{self.type} group, {self.state}; " + "; ".join(members + offsets)


STATES = frozenset(
    {"Assigning", "CompletingRebalance", "Dead", "Empty", "NotReady", "PreparingRebalance", "Reconciling", "Stable"}
)
"""The states of groups of all types."""


class GroupOperations:
    """Operations on a group. Its members notice a change at their next request to the coordinator."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @operation
    def rebalance(self) -> int:
        """Have every member join again; how many there are.

        Members of a classic group get REBALANCE_IN_PROGRESS; members of the other protocols are removed, and join anew.
        """
        count: int = self._link.perform("rebalance", {"group": self.name})["members"]
        return count

    @operation
    def expire(self, member: HasId | str | None = None) -> list[str]:
        """End the session of a member (its id or instance id), or of all; the ids of the removed members."""
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

    @operation
    def describe(self) -> GroupState:
        """The group as it is now; state Dead if there is none."""
        return state_of(self._link.perform("group", {"group": self.name}))

    @operation
    def committed(self, topic: str, partition: int = 0) -> int | None:
        """The committed offset of a partition: the offset of the next record to read; None if there is none."""
        return state_of(self._link.perform("group", {"group": self.name})).offsets.get((topic, partition))

    @operation
    def assert_committed(
        self, topic: str, offset: int | Mapping[int, int], *, partition: int = 0, timeout: float | None = None
    ) -> None:
        """The group commits exactly this offset, or these by partition, within the time."""
        expected = dict(offset) if isinstance(offset, Mapping) else {partition: offset}
        rows = [[topic, index, least] for index, least in expected.items()]
        state, _ = self._wait({"offsets": rows}, timeout)
        if {index: state.offsets.get((topic, index)) for index in expected} != expected:
            text = ", ".join(f"{topic}-{index}: {committed}" for index, committed in expected.items())
            raise self._failure(f"has not committed {text}", state)

    @operation
    def wait_until_assigned(
        self, members: int = 1, *, partitions: int | None = None, timeout: float | None = None
    ) -> list[Member]:
        """Wait until so many members have partitions, and so many partitions a member; the members."""
        state, is_enough = self._wait({"members": members, "partitions": partitions}, timeout)
        if not is_enough:
            raise self._failure(f"has not {members} member{'s'[: members > 1]} with partitions", state)
        return state.members

    @operation
    def wait_until(self, state: str, *, timeout: float | None = None) -> GroupState:
        """Wait until the group is in this state, as Kafka calls it. ValueError for one that there is not."""
        if state not in STATES:
            raise ValueError(f"No group is ever {state!r}; the states are {', '.join(sorted(STATES))}")
        group, is_enough = self._wait({"state": state}, timeout)
        if not is_enough:
            raise self._failure(f"is not {state}", group)
        return group

    def _failure(self, what: str, state: GroupState) -> AssertionError:
        return AssertionError(f"Group {self.name} {what}: {state}{self._link.context(group=self.name)}")

    def _wait(self, conditions: dict[str, Any], timeout: float | None) -> tuple[GroupState, bool]:
        seconds = self._link.deadline(timeout).seconds
        values = {"group": self.name, "timeout_s": seconds, **conditions}
        result = self._link.perform("wait_for_group", values, wait_s=seconds)
        return state_of(result), result["enough"]


def state_of(description: Mapping[str, Any]) -> GroupState:
    """A group from the control channel's JSON."""
    offsets = description["offsets"]
    return GroupState(
        type=description["type"],
        state=description["state"],
        members=[Member(**member) for member in description["members"]],
        offsets={(row["topic"], row["partition"]): row["offset"] for row in offsets},
        lag={(row["topic"], row["partition"]): row["lag"] for row in offsets if row["lag"] is not None},
    )


class Group(GroupOperations, Sync):
    """A group, for plain tests."""


class AsyncGroup(GroupOperations, Async):
    """A group, for tests in asyncio, trio and anyio."""
