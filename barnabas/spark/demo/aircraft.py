"""A user-defined function for the events job: updates the state of an aircraft with one of its flights."""

from __future__ import annotations

from typing import Any

INITIAL = {"flights": 0, "miles": 0, "cancelled": 0, "late": 0, "last_dest": None}
LATE_MINUTES = 60


def fold(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    """The state after the event; `state` is None at the first event of an aircraft.

    Fields that are null are missing in `event`.
    """
    state = dict(state or INITIAL)
    if "dep_delay" not in event:
        state["cancelled"] += 1
        return state
    state["flights"] += 1
    state["miles"] += event["distance"]
    state["late"] += event["dep_delay"] >= LATE_MINUTES
    state["last_dest"] = event["dest"]
    return state
