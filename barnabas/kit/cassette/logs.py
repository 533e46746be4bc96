"""The records of a session: the records that producers sent, in order, and that consumers received, by offset.

Batches are cut anew in each run, so a Produce is compared record by record, and a Fetch is answered by its offsets.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from typing import Any, NamedTuple, TypeAlias

from barnabas.wire.batches.batch_format import Record
from barnabas.wire.batches.record_reader import iter_records
from barnabas.wire.batches.records import iter_batches
from barnabas.wire.types import chunk_bytes, uuid_to_text

Place: TypeAlias = tuple[str, int]
"""A topic, by its name or its id, whichever the request has, and a partition."""


class Sent(NamedTuple):
    """A record that a producer sent."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    offset: int
    """The answer to the record."""
    took: float
    """How long the producer waited for the answer, seconds."""

    def is_same(self, record: Record) -> bool:
        """Whether the record is equal to this one."""
        return self[:3] == content(record)

    def __str__(self) -> str:
        return described(self.key, self.value)


class Span(NamedTuple):
    """The records of a partition in a response: from one offset on, to the one before `end`."""

    start: int
    end: int
    data: Any
    took: float

    def __lt__(self, other: object) -> bool:
        return isinstance(other, Span) and self.end < other.end


def content(record: Record) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """The fields of a record that are compared: all but its timestamp."""
    return record.key, record.value, tuple((name, value) for name, value in record.headers)


def described(key: bytes | None, value: bytes | None) -> str:
    """A record in a sentence."""
    return f"key {_shown(key)}, value {_shown(value)}"


def _shown(data: bytes | None) -> str:
    return "null" if data is None else repr(data.decode("utf-8", "replace")[:80])


def topic_of(topic: Any) -> str:
    """The name, or in newer versions the id, of a topic of Produce or Fetch."""
    name = getattr(topic, "name", "") or getattr(topic, "topic", "")
    return str(name or uuid_to_text(topic.topic_id))


def bytes_of(records: Any) -> bytes:
    """The batches of a field of records, in one piece."""
    if records is None:
        return b""
    return b"".join(map(chunk_bytes, records if isinstance(records, list | tuple) else [records]))


def records_of(data: bytes) -> list[Record]:
    """All records in batches. CorruptRecord if they are none."""
    return [record for batch in iter_batches(data, partial_ok=True) for record in iter_records(batch)]


class Logs:
    """The records of a session by partition."""

    def __init__(self) -> None:
        self._sent: dict[Place, list[Sent]] = defaultdict(list)
        """Records that were not produced again yet."""
        self._spans: dict[Place, list[Span]] = defaultdict(list)
        """The responses by the offset after their last record, each offset once."""
        self._state: dict[Place, Any] = {}
        """The last answer for a partition: its high watermark and so on."""
        self.fetched: set[str] = set()
        """Topics that were fetched."""

    def add_produce(self, request: Any, response: Any | None, took: float) -> None:
        """Store the records that a request wrote; without a response (acks=0) their offsets are not known."""
        offsets = {}
        for topic in () if response is None else response.responses:
            for result in topic.partition_responses:
                offsets[topic_of(topic), result.index] = result.base_offset if result.error_code == 0 else None
        for topic in request.topic_data:
            for partition in topic.partition_data:
                place = topic_of(topic), partition.index
                base = offsets.get(place, 0 if response is None else None)
                if base is not None:
                    records = records_of(bytes_of(partition.records))
                    self._sent[place] += [Sent(*content(record), base + at, took) for at, record in enumerate(records)]

    def add_fetch(self, request: Any, response: Any | None, took: float) -> None:
        """Store the requested offsets and the returned records; partitions with an error are skipped."""
        self.fetched.update(map(topic_of, request.topics))
        for topic in () if response is None else response.responses:
            self.fetched.add(topic_of(topic))  # in a fetch session the request need not name it
            for partition in topic.partitions:
                if partition.error_code == 0:
                    self._add_span((topic_of(topic), partition.partition_index), partition, took)

    def _add_span(self, place: Place, data: Any, took: float) -> None:
        self._state[place] = data
        batches = list(iter_batches(bytes_of(data.records), partial_ok=True))
        if batches:
            span = Span(batches[0].base_offset, batches[-1].next_offset, data, took)
            known = self._spans[place]
            at = bisect_right(known, span)
            if at == 0 or known[at - 1].end != span.end:
                insort(known, span)

    def take(self, place: Place, records: list[Record]) -> Sent | str:
        """The first of these records as the session produced it, or a sentence about the one that differs."""
        waiting = self._sent.get(place, [])
        first = None
        for record in records:
            at = next((at for at, sent in enumerate(waiting) if sent.is_same(record)), None)
            if at is None:
                next_record = f"next comes {waiting[0]}" if waiting else "none comes any more"
                return f"a record with {described(record.key, record.value)}; {next_record}"
            first = waiting[at] if first is None else first
            del waiting[at]
        return first or "no record"

    def at(self, place: Place, offset: int) -> Span | str:
        """The records returned from an offset on, none if there were none yet; or why they are not known."""
        known = self._spans.get(place, [])
        at = bisect_right(known, offset, key=lambda span: span.end)
        if at == len(known):
            return Span(offset, offset, self._state.get(place), 0.0)
        if at == 0 and offset < known[0].start and offset != self._state[place].log_start_offset:
            return f"from offset {offset}; it was read from offset {known[0].start} on"
        return known[at]
