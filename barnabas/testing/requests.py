"""What the clients of a cluster have asked of the broker, as a test sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client. `time` is in seconds since 1970, `took` in seconds; None while it is not answered."""

    api: str
    """As Kafka calls it: Produce, JoinGroup."""
    version: int
    client_id: str | None
    connection: int
    """The connections of a cluster are numbered."""
    topics: tuple[str, ...]
    """What it names."""
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    """Where an error is (`orders-0`; empty: the whole response) and its name."""
    outcome: str
    """answered, unanswered (acks=0), closed (the connection) or waits."""
    took: float | None = field(compare=False)
    time: float = field(compare=False)
    number: int = field(compare=False)
    """In the order of their arrival."""
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What else is recorded of this API: records and acks of Produce, offsets of OffsetCommit …"""

    @property
    def error(self) -> str | None:
        """The first error, None if there was none."""
        return self.errors[0][1] if self.errors else None


def request_of(values: Mapping[str, Any]) -> Request:
    """A request from the control channel's JSON."""
    lists = ("topics", "groups", "transactional_ids")
    texts = {name: tuple(values[name]) for name in lists}
    errors = tuple((where, name) for where, name in values["errors"])
    rest: dict[str, Any] = {name: value for name, value in values.items() if name not in {*lists, "errors"}}
    return Request(**(rest | texts), errors=errors)
