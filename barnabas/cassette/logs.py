"""The records of a session: what its producers sent, in order, and what its consumers were given, by offset.

Batches are cut anew in each run, so a Produce is compared record by record, and a Fetch is answered by its offsets.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple, TypeAlias

from barnabas.wire.batch_format import Record
from barnabas.wire.record_reader import iter_records
from barnabas.wire.records import iter_batches
from barnabas.wire.types import chunk_bytes, uuid_to_text

Place: TypeAlias = tuple[str, int]
"""A topic, by its name or its id, whichever the request has, and a partition."""


class Sent(NamedTuple):
    """A record that a producer sent, and the offset that it got."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    offset: int

    def is_same(self, record: Record) -> bool:
        """Whether it was this record."""
        return self[:3] == content(record)

    def __str__(self) -> str:
        return described(self.key, self.value)


class Given(NamedTuple):
    """What a response gave of a partition: the records from one offset on, to the one before `end`."""

    start: int
    end: int
    data: Any


def content(record: Record) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """What is compared of a record: not its time."""
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
        self.sent: dict[Place, list[Sent]] = defaultdict(list)
        """Those that were not produced again yet."""
        self.given: dict[Place, list[Given]] = defaultdict(list)

    def add_produce(self, request: Any, response: Any | None) -> None:
        """Remember what a request has written; without a response (acks=0) the offsets are not known."""
        offsets = {}
        for topic in () if response is None else response.responses:
            for one in topic.partition_responses:
                offsets[topic_of(topic), one.index] = one.base_offset if one.error_code == 0 else None
        for topic in request.topic_data:
            for one in topic.partition_data:
                place = topic_of(topic), one.index
                base = offsets.get(place, 0 if response is None else None)
                if base is not None:
                    records = records_of(bytes_of(one.records))
                    self.sent[place] += [Sent(*content(record), base + at) for at, record in enumerate(records)]

    def add_fetch(self, response: Any) -> None:
        """Remember what a response has given; of one with an error there is nothing to remember."""
        for topic in response.responses:
            for one in topic.partitions:
                if one.error_code == 0:
                    batches = list(iter_batches(bytes_of(one.records), partial_ok=True))
                    start = batches[0].base_offset if batches else one.high_watermark
                    end = batches[-1].base_offset + batches[-1].last_offset_delta + 1 if batches else start
                    self.given[topic_of(topic), one.partition_index].append(Given(start, end, one))

    def take(self, place: Place, records: list[Record]) -> int | str:
        """The offset of the first of these records, which the session produced too, or what is wrong."""
        waiting = self.sent.get(place, [])
        first = None
        for record in records:
            at = next((at for at, one in enumerate(waiting) if one.is_same(record)), None)
            if at is None:
                asked = described(record.key, record.value)
                return f"a record with {asked}; " + (f"next comes {waiting[0]}" if waiting else "none comes any more")
            first = waiting[at].offset if first is None else first
            del waiting[at]
        return 0 if first is None else first

    def at(self, place: Place, offset: int) -> Given | None:
        """What was given from an offset on, None if nothing was; with no records if there are none yet."""
        known = self.given.get(place)
        if not known:
            return None
        for one in known:
            if one.start <= offset < one.end:
                return one
        return Given(offset, offset, known[-1].data)
