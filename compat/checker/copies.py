"""Exactly-once copies: the target must have the same values as the source, each as often.

The differences are `copy-missing`, `copy-repeated` and `copy-invented`. Both topics must be read to their ends, else
the finding is `copy-unread`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from compat.checker.finding import Finding
from compat.checker.history import Event
from compat.checker.logs import Logs


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Differences of each copy that the history declares."""
    for event in events:
        if event.type == "copy":
            yield from copy(event["source"], event["target"], logs)


def copy(source: str, target: str, logs: Logs) -> Iterator[Finding]:
    """Differences of one copy."""
    read_to_end = {topic for topic, _ in logs.ends}
    for topic in (source, target):
        if topic not in read_to_end:
            yield Finding("copy-unread", f"{topic} was not read to its end")
    expected, actual = (Counter(_counts(topic, logs)) for topic in (source, target))
    for value in expected | actual:
        text = f"{value!r} is {actual[value]} times in {target}, {expected[value]} in {source}"
        if actual[value] > expected[value]:
            yield Finding("copy-repeated" if expected[value] else "copy-invented", text)
        elif actual[value] < expected[value]:
            yield Finding("copy-missing", text)


def _counts(topic: str, logs: Logs) -> dict[str, int]:
    return {value: len(positions) for value, positions in logs.positions_of(topic).items()}
