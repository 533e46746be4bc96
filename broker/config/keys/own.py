"""Barnabas' own keys. Kafka's name is taken wherever Kafka has one; what is left is here, under `barnabas.`."""

from __future__ import annotations

from barnabas.wire.configdef import HIGH, string

ALWAYS, INTERVAL, OS = "always", "interval", "os"

LOG_SYNC = string(
    "barnabas.log.sync",
    None,
    f"[{ALWAYS}, {INTERVAL}, {OS}]",
    HIGH,
    "When records go to the disk: always is before they are acknowledged and readable; interval is within "
    "log.flush.interval.ms, a second unless set; os is when the system likes, as Kafka does. Unset it is always where "
    "a data directory was named, os for a temporary one.",
    used=True,
)
