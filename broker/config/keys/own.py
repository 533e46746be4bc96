"""Barnabas' own keys, named `barnabas.*`: only where Kafka has no key of that meaning."""

from __future__ import annotations

from barnabas.wire.configdef import HIGH, string

ALWAYS, INTERVAL, OS = "always", "interval", "os"

LOG_SYNC = string(
    "barnabas.log.sync",
    None,
    f"[{ALWAYS}, {INTERVAL}, {OS}]",
    HIGH,
    "When records are flushed to disk. always: before they are acknowledged and readable. interval: within "
    "log.flush.interval.ms, by default a second. os: when the operating system does it, as in Kafka. The default is "
    "always if a data directory is configured, and os for a temporary one.",
    used=True,
)
