"""The states of a member of a consumer or streams group (rule G3; KIP-848, KIP-1071).

A member's state is part of its record, as a number that each protocol has its own of. The table is data: tests compare
every step that a member takes with it. Source: Kafka 4.4 `MemberState` of both protocols.
"""

from __future__ import annotations

from enum import Enum


class MemberState(Enum):
    """How far a member has come towards its target assignment, of partitions or of tasks."""

    STABLE = "Stable"
    """Has everything that the target assignment of its member epoch gives it."""

    UNREVOKED = "Unrevoked"
    """Has been told to revoke partitions or tasks and has not confirmed it; stays in its epoch until then."""

    UNRELEASED = "Unreleased"
    """Is in the epoch of the target assignment, and waits for partitions or tasks that another member still has.

    In a streams group they may also be tasks that its own process still has in another role.
    """

    UNKNOWN = "Unknown"
    """Written by a newer release: the member has to join again, unless it has nothing."""

    def __str__(self) -> str:
        return self.value


MEMBER_PREDECESSORS: dict[MemberState, frozenset[MemberState]] = {
    MemberState.STABLE: frozenset({MemberState.UNREVOKED, MemberState.UNRELEASED, MemberState.UNKNOWN}),
    MemberState.UNREVOKED: frozenset({MemberState.STABLE, MemberState.UNRELEASED, MemberState.UNKNOWN}),
    MemberState.UNRELEASED: frozenset({MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNKNOWN}),
    MemberState.UNKNOWN: frozenset(),
}
"""For each state of a member the states it may follow."""


class StateCodes:
    """The numbers of the states in the records of one protocol."""

    def __init__(self, stable: int, unrevoked: int, unreleased: int, unknown: int = 127) -> None:
        self._codes = {
            MemberState.STABLE: stable,
            MemberState.UNREVOKED: unrevoked,
            MemberState.UNRELEASED: unreleased,
            MemberState.UNKNOWN: unknown,
        }
        self._states = {code: state for state, code in self._codes.items()}

    def code(self, state: MemberState) -> int:
        """The number of a state."""
        return self._codes[state]

    def state(self, code: int) -> MemberState:
        """The state of a number; UNKNOWN for numbers of newer releases."""
        return self._states.get(code, MemberState.UNKNOWN)
