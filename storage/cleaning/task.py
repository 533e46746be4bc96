"""What a cleaner is told and what it answers: plain values, so that both can go through a pipe as JSON."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.txn_index import AbortedTransaction

NO_DATA = -1
"""In place of a producer's last offset: it has written no data in its epoch, so its last marker is its memory."""


class CleaningTask(NamedTuple):
    """One pass over one log. Sizes are bytes, times milliseconds.

    `segments` are (base offset, size) of all closed segments below `end_offset`, the base of the first that may not be
    cleaned. `producers` maps producer ids to (last data offset or NO_DATA, epoch). `key_memory` bounds the map of keys,
    `io_buffer` what is read at a time, `io_per_second` what is read and written in a second (0: no bound).
    """

    directory: str
    segments: list[tuple[int, int]]
    first_dirty_offset: int
    end_offset: int
    producers: dict[int, tuple[int, int]]
    aborted: list[AbortedTransaction]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    key_memory: int
    io_buffer: int
    io_per_second: float

    def to_json(self) -> str:
        """One line of text."""
        import json  # hardly a broker needs it at its start

        return json.dumps({**self._asdict(), "producers": list(self.producers.items())})

    @classmethod
    def from_json(cls, text: str) -> CleaningTask:
        """The task again."""
        import json

        fields = json.loads(text)
        fields["segments"] = [(base_offset, size) for base_offset, size in fields["segments"]]
        fields["producers"] = {producer_id: (offset, epoch) for producer_id, (offset, epoch) in fields["producers"]}
        fields["aborted"] = [AbortedTransaction(*entry) for entry in fields["aborted"]]
        return cls(**fields)


class CleanedGroup(NamedTuple):
    """A segment written as `.cleaned` files, synced, to take the place of the segments at `replaced` (base offsets)."""

    replaced: list[int]
    base_offset: int
    size: int
    has_txn_index: bool


class CleaningDone(NamedTuple):
    """The end of a pass: all below `end_offset` is clean; what was read and written, what the keys came to."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    keys: int
