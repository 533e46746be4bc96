"""The interface of every coordinator: an event at a moment is handled and gives a `Result`.

`handle(event, at) -> Result(records, replies)`. The caller appends the records to the coordinator's
partition, passes them to `replay`, and only then sends the replies (rule G2). When the append
fails, `Result.failed(error, at)` gives the replies to send instead. Time advances through
`next_deadline()` and `tick(at)`. Coordinators use no event loop, clock or random numbers of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from barnabas.wire.errors import ErrorCode
    from barnabas.wire.schema import Struct

Ticket = Hashable
"""Identifies one request that waits for its response; opaque to the coordinators."""

S = TypeVar("S", bound=Hashable)


class Moment(NamedTuple):
    """One instant on both clocks."""

    now: float
    """Monotonic seconds, for deadlines."""
    now_ms: int
    """Wall clock, milliseconds since 1970, for record timestamps only."""


class CoordinatorRecord(NamedTuple):
    """One record of a coordinator's partition, in Kafka's bytes; `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The response to one ticket."""

    ticket: Ticket
    message: Struct | Callable[[], Struct]
    """The response, or what makes it: thousands are made when each is sent, not all of them in one event."""
    on_error: Callable[[ErrorCode], Struct] | None = None
    """Makes the response to send when the records cannot be appended; None: send `message` in that case too."""

    def made(self) -> Struct:
        """The response."""
        return self.message() if callable(self.message) else self.message


class Result:
    """The result of an event: records to append atomically and in order, then replies to send."""

    __slots__ = ("_undo", "producer", "records", "replies")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.producer: tuple[int, int] | None = None
        """Producer id and epoch of the transaction that the records belong to; None: they are not transactional."""
        self.replies: list[Reply] = []
        self._undo: list[Callable[[Moment], Result]] = []

    def reply(
        self,
        ticket: Ticket,
        message: Struct | Callable[[], Struct],
        on_error: Callable[[ErrorCode], Struct] | None = None,
    ) -> None:
        """Send `message`, or what it returns then, for `ticket` once the records are in the log."""
        self.replies.append(Reply(ticket, message, on_error))

    def on_failure(self, undo: Callable[[Moment], Result]) -> None:
        """Call `undo` when the records cannot be appended; its replies follow this result's replies."""
        self._undo.append(undo)

    def failed(self, error: ErrorCode, at: Moment) -> Result:
        """The result to apply instead of this one after the append failed with `error`."""
        instead = self.failed_replies(error)
        for undo in self._undo:
            instead.merge(undo(at))
        return instead

    def failed_replies(self, error: ErrorCode) -> Result:
        """The same replies, each as the response for `error`, and no records."""
        instead = Result()
        for ticket, message, on_error in self.replies:
            instead.reply(ticket, message if on_error is None else partial(on_error, error))
        return instead

    def merge(self, other: Result) -> None:
        """Append everything in `other` to this result."""
        self.records += other.records
        self.replies += other.replies
        self._undo += other._undo

    def __bool__(self) -> bool:
        return bool(self.records or self.replies)

    def __repr__(self) -> str:
        return f"Result(records={self.records!r}, replies={self.replies!r})"


def check_transition(predecessors: Mapping[S, Iterable[S]], old: S, new: S) -> None:
    """Raise AssertionError unless the table allows `new` after `old`; any other transition is a bug in Barnabas."""
    if old not in predecessors[new]:
        raise AssertionError(f"{old} may not become {new}")
