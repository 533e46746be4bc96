"""Folds of a user, for the tests of the events job."""

from __future__ import annotations

from typing import Any


def until_closed(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any] | None:
    """Keeps the texts of an account's events; removes the account when it is closed."""
    if event.get("text") == "close":
        return None
    return {"texts": [*(state or {}).get("texts", []), event.get("text")]}
