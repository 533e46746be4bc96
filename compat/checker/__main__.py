"""Checks histories of clients: `python -m compat.checker HISTORY...`, files or directories with `*.jsonl`.

Prints one line for each finding. Exit code 1 with findings, 2 when a history cannot be read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from compat.checker import committed_offsets, copies, order, records, share_groups
from compat.checker.finding import Finding
from compat.checker.history import Event, HistoryError, read
from compat.checker.logs import Logs

CHECKS = (records.findings, order.findings, committed_offsets.findings, copies.findings, share_groups.findings)


def check(events: Iterable[Event]) -> list[Finding]:
    """All findings of a history; `events` are ordered by time."""
    ordered = list(events)
    logs = Logs(ordered)
    return [finding for find in CHECKS for finding in find(ordered, logs)]


def main(arguments: list[str]) -> int:
    """Print the findings; the exit code."""
    if not arguments:
        print("usage: python -m compat.checker HISTORY...", file=sys.stderr)
        return 2
    try:
        events = read(map(Path, arguments))
    except (HistoryError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if not events:
        print("the history has no events", file=sys.stderr)
        return 2
    findings = check(events)
    for finding in findings:
        print(finding)
    if not findings:
        print(f"no findings in {len(events)} events of {len({event.process for event in events})} processes")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
