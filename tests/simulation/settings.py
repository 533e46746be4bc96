"""Broker settings that the runs have in common."""

from __future__ import annotations

from typing import Final

COORDINATORS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}
"""One partition for each coordinator topic, and frequent checks for transactions that have timed out."""


def short_sessions(kind: str) -> dict[str, str]:
    """Sessions of 6 s, heartbeats every 2 s and assignments without delay; `kind` is consumer or share."""
    return {
        f"group.{kind}.min.session.timeout.ms": "6000",
        f"group.{kind}.session.timeout.ms": "6000",
        f"group.{kind}.min.heartbeat.interval.ms": "1000",
        f"group.{kind}.heartbeat.interval.ms": "2000",
        f"group.{kind}.assignment.interval.ms": "0",
        f"group.{kind}.min.assignment.interval.ms": "0",
    }
