"""The differences that are allowed, each with its reason. A row that a run of the standard seeds does not use fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Allowed:
    """A row: where answers may differ and why.

    `condition(request, kafkas, ours)` has the values of the field; without one, any values may differ.
    """

    api: str
    path: str
    """The path of the field, with `*` for parts of it."""
    reason: str
    condition: Callable[[Any, Any, Any], bool] | None = None


def _only_our_text(_request: Any, kafkas: Any, ours: Any) -> bool:
    return kafkas is None and isinstance(ours, str)


def _exception(_request: Any, kafkas: Any, ours: Any) -> bool:
    return bool(kafkas == -1 and ours > 0)


def _both_texts(_request: Any, kafkas: Any, ours: Any) -> bool:
    return bool(kafkas and ours)


def _same_but_for_the_range(_request: Any, kafkas: Any, ours: Any) -> bool:
    """Both name the timestamp, and a range that depends on the time."""
    if not isinstance(kafkas, str) or not isinstance(ours, str):
        return False
    return "within [" in kafkas and kafkas.partition("within [")[0] == ours.partition("within [")[0]


def _sooner(_request: Any, kafkas: Any, ours: Any) -> bool:
    return bool(0 < ours < kafkas)


def _named_twice(request: Any, kafkas: Any, ours: Any) -> bool:
    names = next((request[name] for name in ("groups", "group_ids", "groups_names") if request.get(name)), [])
    names = [name["group_id"] if isinstance(name, dict) else name for name in names]
    return len(set(names)) < len(names) and not ours and bool(kafkas)


TABLE: tuple[Allowed, ...] = (
    Allowed("*", "*.(order)", "Kafka has these lists in the order of its hash maps"),
    Allowed("Produce", "*.error_message", "we say what is wrong with a batch, Kafka says nothing", _only_our_text),
    Allowed("*", "*error_code", "an exception in Kafka's handler; we say which value is wrong", _exception),
    Allowed("DescribeConfigs", "*.documentation", "our own words", _both_texts),
    Allowed("DescribeConfigs", ".results.error_message", "we say which value is wrong", _both_texts),
    Allowed("ApiVersions", ".finalized_features_epoch", "the offset of a metadata log of other records"),
)
"""Differences that stay."""

RARE: tuple[Allowed, ...] = (
    Allowed("Produce", "*error_message", "the range of timestamps depends on the moment", _same_but_for_the_range),
    Allowed("*GroupHeartbeat", "heartbeat_interval_ms", "members of a moving group come back sooner", _sooner),
    Allowed("*Group*", "groups.(elements)", "a group named twice is described once: its cost is bounded", _named_twice),
    Allowed("OffsetFetch", "groups.(elements)", "a group named twice for all offsets is read once", _named_twice),
)
"""Differences that stay, which the standard sequences do not have."""

KNOWN: tuple[Allowed, ...] = (
    Allowed("ApiVersions", ".supported_features.(elements)", "an old version's features without a minimum of 0"),
    Allowed("ApiVersions", ".api_keys.(elements)", "API keys 93 and 94 are not shown"),
)
"""Differences that are to be mended: a row that is not used any more has to be removed."""


def allowed_by(api: str, path: str, request: Any, kafkas: Any, ours: Any) -> Allowed | None:
    """The row that allows a difference."""
    api = api.removeprefix("after: ")
    for row in (*TABLE, *RARE, *KNOWN):
        if not fnmatchcase(api, row.api) or not fnmatchcase(f".{path}", f"*{row.path}"):
            continue
        if row.condition is None or row.condition(request, kafkas, ours):
            return row
    return None
