"""A user's function for the events job: the state of an aircraft after a flight."""

from __future__ import annotations

from typing import Any

NEW = {"flights": 0, "miles": 0, "cancelled": 0, "late": 0, "last_dest": None}
LATE_MINUTES = 60


def fold(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    """The state after the event; `state` is None for a new aircraft. Null fields are missing in the event."""
    state = dict(state or NEW)
    if "dep_delay" not in event:
        state["cancelled"] += 1
        return state
    state["flights"] += 1
    state["miles"] += event["distance"]
    state["late"] += event["dep_delay"] >= LATE_MINUTES
    state["last_dest"] = event["dest"]
    return state
