"""Fields whose values the two brokers choose on their own, by name: they are mapped, or only have to be sensible.

An id is mapped by first occurrence: the first value of one broker stands for the value that the other one has at that
place, and both must keep to it, in both directions. Values that mean "none" have to be the same.
"""

from __future__ import annotations

import time
from typing import Any

IDS: dict[str, str] = {
    "topic_id": "topic id",
    "producer_id": "producer id",
    "ongoing_txn_producer_id": "producer id",
    "session_id": "fetch session",
    "cluster_id": "cluster id",
    "member_id": "member id",
    "leader": "member id",
    "client_instance_id": "client instance",
}
"""Fields to kinds of ids. `leader` is the field of JoinGroup; numbers are compared as they are."""
NONE_VALUES = (-1, 0, "", None, bytes(16), bytes(15) + b"\x01")

TIMES = {
    "log_append_time_ms", "last_timestamp", "transaction_start_time_ms", "max_timestamp", "base_timestamp", "timestamp",
    "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms",
}  # fmt: skip
"""Milliseconds of the broker's clock: both near now, else the same."""
NEAR_S = 120.0

ADDRESSES = {"host", "port", "client_host", "log_dir", "usable_bytes"}
"""Addresses, paths and the free space of a disk that changes meanwhile: any, but not none on one side only."""


def kind_of(name: str) -> str:
    """id, time, address, or nothing for a field whose values have to be the same."""
    if name in IDS:
        return "id"
    if name in TIMES:
        return "time"
    return "address" if name in ADDRESSES else ""


class Mapping:
    """Which id of one broker is which of the other."""

    def __init__(self) -> None:
        self._forth: dict[tuple[str, Any], Any] = {}
        self._back: dict[tuple[str, Any], Any] = {}

    def agree(self, kind: str, kafkas: Any, ours: Any) -> bool:
        """Whether two values are the same id; two that were not seen before are, from now on."""
        if kafkas in NONE_VALUES or ours in NONE_VALUES or type(kafkas) is not type(ours):
            return bool(kafkas == ours)
        known, known_back = self._forth.get((kind, kafkas)), self._back.get((kind, ours))
        if known is None and known_back is None:
            self._forth[kind, kafkas] = ours
            self._back[kind, ours] = kafkas
            return True
        return bool(known == ours)

    def ours_of(self, kind: str, kafkas: Any) -> Any:
        """Our id for one of Kafka's, or itself if it was not seen before."""
        return self._forth.get((kind, kafkas), kafkas)


def near_now(value: Any) -> bool:
    """Whether it is milliseconds of about now."""
    return isinstance(value, int) and abs(value / 1000 - time.time()) < NEAR_S
