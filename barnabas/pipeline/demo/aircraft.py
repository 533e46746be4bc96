"""A function of one's own for the events job: what is known of an aircraft after one more of its flights."""

from __future__ import annotations

from typing import Any

NEW = {"flights": 0, "miles": 0, "cancelled": 0, "late": 0, "last_dest": None}
LATE_MINUTES = 60


def fold(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    """The state after the event; `state` is None for an aircraft that was not seen before.

    A field of an event that is null is not there.
    """
    state = dict(state or NEW)
    if "dep_delay" not in event:
        state["cancelled"] += 1
        return state
    state["flights"] += 1
    state["miles"] += event["distance"]
    state["late"] += event["dep_delay"] >= LATE_MINUTES
    state["last_dest"] = event["dest"]
    return state
