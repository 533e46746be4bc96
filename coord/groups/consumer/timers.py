"""The timers of consumer groups' members (rules G3, G4)."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

TimerKind = Literal["consumer-session", "consumer-rebalance", "consumer-join", "consumer-sync"]

KINDS: tuple[TimerKind, ...] = get_args(TimerKind)


class ConsumerTimer(NamedTuple):
    """What comes due: a member's session, its time to give up partitions, or that of a classic one to join or sync."""

    kind: TimerKind
    group_id: str
    member_id: str
