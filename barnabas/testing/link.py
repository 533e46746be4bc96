"""The state that the objects of one cluster share: channel, the cluster's number, deadline, context of failures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.testing.errors import BrokerError, RefusedError

if TYPE_CHECKING:
    from barnabas.testing.channel import Channel
    from barnabas.testing.records import Record

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

TIMEOUT_S: Final = 10.0
"""How long assertions wait unless the test, or the ini key barnabas_timeout, says otherwise, seconds."""
SHOWN: Final = 10
"""Records that a failure shows."""


class Deadline:
    """When an assertion gives up."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    def remaining_s(self) -> float:
        """The remaining seconds, at least 0."""
        return max(0.0, self._at - time.monotonic())


class Link:
    """One cluster, as the objects that a test uses reach it."""

    def __init__(self, channel: Channel, number: int, timeout: float = TIMEOUT_S) -> None:
        self.channel = channel
        self.number = number
        self.timeout = timeout
        self.is_closed = False
        """The test has closed the cluster."""

    def perform(self, name: str, values: dict[str, Any] | None = None, wait_s: float = 0.0) -> Any:
        """Do an operation of the cluster; values that are None are left out. Errors as `Channel.call`."""
        request = {key: value for key, value in (values or {}).items() if value is not None}
        return self.channel.call("POST", f"/v1/clusters/{self.number}/{name}", request, wait_s)

    def to(self, number: int) -> Link:
        """The same for another cluster of the process."""
        return Link(self.channel, number, self.timeout)

    def deadline(self, timeout: float | None) -> Deadline:
        """The deadline of an assertion."""
        return Deadline(self.timeout if timeout is None else timeout)

    def topics(self) -> list[str]:
        """The topics that exist, but for the broker's internal ones."""
        body = {"topics": None, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}
        topics = self.perform("request", {"api": "Metadata", "body": body})["topics"]
        return sorted(topic["name"] for topic in topics if not topic["isInternal"])

    def context(self, records: Sequence[Record] = (), group: str | None = None) -> str:
        """The text after a failure's sentence: the last records, and the last requests of a group's or all clients."""
        shown = records[-SHOWN:]
        head = "The records" if len(shown) == len(records) else f"The last {len(shown)} of {len(records)} records"
        text = f"\n{head}:" + "".join(f"\n  {record}" for record in shown) if shown else ""
        try:
            lines = self.perform("timeline", {"last": SHOWN, "group": group})["lines"]
        except (BrokerError, RefusedError):
            return text  # the failure is of more interest than that its cluster is closed
        about = "clients" if group is None else f"members of {group}"
        return text + (f"\nWhat {about} did last:" + "".join(f"\n  {line}" for line in lines) if lines else "")
