"""What every coordinator speaks: an event at a moment goes in, a `Result` comes out.

`handle(event, at) -> Result(records, replies)`. The caller appends the records to the coordinator's
partition, gives them back through `replay` and only then releases the replies (rule G2). When the append
fails the caller asks `Result.failed(error, at)` for what to answer instead. Time moves through
`next_deadline()` and `tick(at)`. Nothing here knows a loop, a clock or a random number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from barnabas.wire.errors import ErrorCode
    from barnabas.wire.schema import Struct

Ticket = Hashable
"""Stands for one request that waits for its answer; opaque to the machines."""

S = TypeVar("S", bound=Hashable)


class Moment(NamedTuple):
    """One instant on both clocks."""

    now: float
    """Monotonic seconds: deadlines are reckoned in it."""
    now_ms: int
    """Wall clock, milliseconds since 1970: record timestamps only."""


class CoordinatorRecord(NamedTuple):
    """One record of a coordinator's partition, in Kafka's bytes; `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The answer to one ticket."""

    ticket: Ticket
    message: Struct
    on_error: Callable[[ErrorCode], Struct] | None = None
    """Makes the answer for the case that the records cannot be appended; None: the answer is the same then."""


class Result:
    """What an event led to: records to append (together, in order), then replies to release."""

    __slots__ = ("_undo", "producer", "records", "replies")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.producer: tuple[int, int] | None = None
        """Producer id and epoch in whose open transaction the records are written; None: they count at once."""
        self.replies: list[Reply] = []
        self._undo: list[Callable[[Moment], Result]] = []

    def reply(self, ticket: Ticket, message: Struct, on_error: Callable[[ErrorCode], Struct] | None = None) -> None:
        """Answer `ticket` once the records are in the log."""
        self.replies.append(Reply(ticket, message, on_error))

    def on_failure(self, undo: Callable[[Moment], Result]) -> None:
        """Run `undo` when the records cannot be appended; its replies follow those of this result."""
        self._undo.append(undo)

    def failed(self, error: ErrorCode, at: Moment) -> Result:
        """The append failed with `error`: what to do instead."""
        instead = self.failed_replies(error)
        for undo in self._undo:
            instead.merge(undo(at))
        return instead

    def failed_replies(self, error: ErrorCode) -> Result:
        """The answers in the case that nothing of this has come to be, because of `error`."""
        instead = Result()
        for ticket, message, on_error in self.replies:
            instead.reply(ticket, message if on_error is None else on_error(error))
        return instead

    def merge(self, other: Result) -> None:
        """Take over everything `other` holds, after what is here."""
        self.records += other.records
        self.replies += other.replies
        self._undo += other._undo

    def __bool__(self) -> bool:
        return bool(self.records or self.replies)

    def __repr__(self) -> str:
        return f"Result(records={self.records!r}, replies={self.replies!r})"


class Timers:
    """Deadlines by key, earliest first; keys of one instant come out in the order they were set.

    A deadline that only moves later (a heartbeat) costs a dictionary store: its heap entry is moved when it surfaces.
    """

    __slots__ = ("_deadlines", "_heap", "_queued", "_sequence")

    def __init__(self) -> None:
        self._deadlines: dict[Hashable, float] = {}
        self._queued: dict[Hashable, float] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        self._sequence = 0

    def set(self, key: Hashable, deadline: float) -> None:
        """Have `key` come due at `deadline` (monotonic seconds), instead of any earlier wish for it."""
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._push(key, deadline)

    def cancel(self, key: Hashable) -> None:
        """Forget `key`; nothing happens when it is not set."""
        self._deadlines.pop(key, None)

    def deadline(self, key: Hashable) -> float | None:
        """When `key` comes due, or None."""
        return self._deadlines.get(key)

    def next_deadline(self) -> float | None:
        """The earliest deadline, or None when nothing is set."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Hashable | None:
        """Take one key whose deadline is at or before `now`, or None. Its timer is gone then."""
        self._settle()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, _, key = heappop(self._heap)
        del self._queued[key]
        del self._deadlines[key]
        return key

    def __len__(self) -> int:
        return len(self._deadlines)

    def _push(self, key: Hashable, deadline: float) -> None:
        self._sequence += 1
        self._queued[key] = deadline
        heappush(self._heap, (deadline, self._sequence, key))

    def _settle(self) -> None:
        """Drop or move the heap's head until it is a true deadline."""
        while self._heap:
            queued, _, key = self._heap[0]
            if self._queued.get(key) != queued:  # an earlier entry of the same key replaced this one
                heappop(self._heap)
                continue
            wanted = self._deadlines.get(key)
            if wanted == queued:
                return
            heappop(self._heap)
            del self._queued[key]
            if wanted is not None:
                self._push(key, wanted)


def check_transition(predecessors: Mapping[S, Iterable[S]], old: S, new: S) -> None:
    """Raise AssertionError unless the table lets `old` be followed by `new`: such a step is a bug of ours."""
    if old not in predecessors[new]:
        raise AssertionError(f"{old} may not become {new}")


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(4096)
def coordinator_partition(key: str, partitions: int) -> int:
    """Which partition of a coordinator's topic serves `key` (Kafka's `Utils.abs(key.hashCode()) % partitions`)."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
