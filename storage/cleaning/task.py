"""The task and the results of a cleaner: plain values that are sent through a pipe as JSON."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.segments.txn_index import AbortedTransaction

NO_DATA = -1
"""Instead of a producer's last offset: it has written no data in its epoch, which is restored from its last marker."""


class CleaningTask(NamedTuple):
    """One pass over one log. Sizes are bytes, times milliseconds.

    `segments` are (base offset, size) of all closed segments below `end_offset`, the base of the first that may not be
    cleaned. `producers` maps producer ids to (last data offset or NO_DATA, epoch). `key_memory` limits the map of keys,
    `io_buffer` the bytes per read, `io_per_second` the bytes read and written per second (0: no limit).
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
        """The task as one line of JSON."""
        import json  # not needed at the start of a broker

        return json.dumps({**self._asdict(), "producers": list(self.producers.items())})

    @classmethod
    def from_json(cls, text: str) -> CleaningTask:
        """The task from the line of `to_json`."""
        import json

        fields = json.loads(text)
        fields["segments"] = [(base_offset, size) for base_offset, size in fields["segments"]]
        fields["producers"] = {producer_id: (offset, epoch) for producer_id, (offset, epoch) in fields["producers"]}
        fields["aborted"] = [AbortedTransaction(*entry) for entry in fields["aborted"]]
        return cls(**fields)


class CleanedGroup(NamedTuple):
    """A segment in synced `.cleaned` files, which replaces the segments with the base offsets `replaced`."""

    replaced: list[int]
    base_offset: int
    size: int
    has_txn_index: bool


class CleaningDone(NamedTuple):
    """The summary of a pass: the log is clean below `end_offset`; bytes, records and distinct keys processed."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    keys: int
