"""What has happened in a run, as one number: two runs of a seed must agree in it."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.clock import Clock

LINES = 100_000


class Trace:
    """A running hash; the last lines are kept for whoever looks for the cause of a failure."""

    def __init__(self, clock: Clock, *, is_kept: bool = False) -> None:
        self._clock = clock
        self._hash = blake2b(digest_size=8)
        self._is_kept = is_kept
        self.lines: deque[str] = deque(maxlen=LINES)

    def note(self, what: str, *details: object) -> None:
        """Something has happened now."""
        self._note(f"{self._clock.now:.9f} {what} {details}")

    def note_bytes(self, what: str, data: bytes) -> None:
        """Bytes were passed on now."""
        self._hash.update(data)
        self._note(f"{self._clock.now:.9f} {what} {data!r}" if self._is_kept else f"{self._clock.now:.9f} {what}")

    def _note(self, line: str) -> None:
        self._hash.update(line.encode())
        if self._is_kept:
            self.lines.append(line)

    def digest(self) -> str:
        """The number so far."""
        return self._hash.hexdigest()
