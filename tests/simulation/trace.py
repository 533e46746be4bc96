"""The events of a run as one hash: two runs of a seed must have the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.clock import Clock

LINES = 100_000


def combined(digests: Iterable[str]) -> str:
    """One hash of the hashes of several runs."""
    combined_hash = blake2b(digest_size=8)
    for digest in digests:
        combined_hash.update(digest.encode())
    return combined_hash.hexdigest()


class Trace:
    """A running hash; when verbose, the last `LINES` lines are stored too."""

    def __init__(self, clock: Clock, *, is_verbose: bool = False) -> None:
        self._clock = clock
        self._hash = blake2b(digest_size=8)
        self._is_verbose = is_verbose
        self.lines: deque[str] = deque(maxlen=LINES)

    def note(self, what: str, *details: object) -> None:
        """Add an event."""
        self._note(f"{self._clock.now:.9f} {what} {details}")

    def note_bytes(self, what: str, data: bytes) -> None:
        """Add bytes that were transferred."""
        self._hash.update(data)
        self._note(f"{self._clock.now:.9f} {what} {data!r}" if self._is_verbose else f"{self._clock.now:.9f} {what}")

    def _note(self, line: str) -> None:
        self._hash.update(line.encode())
        if self._is_verbose:
            self.lines.append(line)

    def digest(self) -> str:
        """The hash so far, as hex digits."""
        return self._hash.hexdigest()
