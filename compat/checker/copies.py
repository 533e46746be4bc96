"""Exactly-once copies: as multisets of values, the target is the source.

`copy-missing`, `copy-repeated`, `copy-invented` name the differences.

The source is what was read of it and what is certain to have been written to it; both topics have to be read to their
ends, or the check is `copy-unread`, since a copy that nobody looked at proves nothing.
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
    wanted, found = (Counter(_counts(topic, logs)) for topic in (source, target))
    for value in wanted | found:
        if found[value] > wanted[value]:
            kind = "copy-repeated" if wanted[value] else "copy-invented"
            yield Finding(kind, f"{value!r} is {found[value]} times in {target}, {wanted[value]} in {source}")
        elif found[value] < wanted[value]:
            yield Finding("copy-missing", f"{value!r} is {found[value]} times in {target}, {wanted[value]} in {source}")


def _counts(topic: str, logs: Logs) -> dict[str, int]:
    return {value: len(places) for value, places in logs.places_of(topic).items()}
