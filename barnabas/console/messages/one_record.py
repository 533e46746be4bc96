"""One record, or a part of its key or value.

The functions run in the console where the record is small, otherwise in a process of their own (`processes.py`), which
gives only what is shown.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.console.messages.contents.formats import Decoder, hex_dump
from barnabas.console.messages.criteria import Criteria, Matcher
from barnabas.console.messages.found_records import FoundRecord
from barnabas.console.messages.pages import PageRequest, read_page
from barnabas.console.messages.starts import Span, partitions_of, read_span

RAW_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Side:
    """The key or the value of a record."""

    topic: str
    partition: int
    offset: int
    is_key: bool

    def read(self, cluster: Cluster) -> bytes:
        """All its bytes; null is none. NotFound if there is no such record."""
        record, _ = read_record(cluster, self.topic, self.partition, self.offset, is_whole=True)
        return (record.key if self.is_key else record.value) or b""


@dataclass(frozen=True)
class Part:
    """Text to show, and where it goes on; -1 at the end."""

    text: str
    next: int
    size: int


def read_record(
    cluster: Cluster, topic: str, partition: int, offset: int, *, is_whole: bool = False
) -> tuple[FoundRecord, Span]:
    """A record, and the offsets of its partition. NotFound if there is none."""
    span = read_span(cluster, topic, partitions_of(cluster, topic, [partition]), committed_only=False)
    first, end = span.first[partition], span.end[partition]
    if not first <= offset < end:
        has = f"it has {first} to {end - 1}" if end > first else "it is empty"
        raise NotFound(f"there is no offset {offset} in {topic}-{partition}; {has}")
    narrow = Span({partition: offset}, {partition: offset + 1}, span.stable)
    request = PageRequest(topic, {partition: offset}, 1, backwards=False, shows_control=True, is_whole=is_whole)
    records = read_page(cluster, narrow, request, Matcher(Criteria())).records
    if not records:
        raise NotFound(f"there is no record at offset {offset} of {topic}-{partition} any more: it was compacted away")
    return records[0], span


def read_part(cluster: Cluster, side: Side, form: str, decoder: Decoder, at: int, end: int) -> Part:
    """A part of a key or value as `form`: decoded (`at` and `end` count characters), text or hex (bytes).

    What the decoder shows as text or hex is counted in bytes too.
    """
    data = side.read(cluster)
    if form == "decoded":
        content = decoder.content(data)
        if content.format not in ("text", "hex"):
            size = len(content.text)
            return Part(content.text[at:end], end if end < size else -1, size)
    if form == "hex" or not _is_text(data):
        return Part(hex_dump(data[at:end], at), end if end < len(data) else -1, len(data))
    text, end = _text_part(data, at, end)
    return Part(text, end if end < len(data) else -1, len(data))


def read_pieces(cluster: Cluster, side: Side) -> Iterator[bytes]:
    """The bytes of a key or value, in pieces; at least one."""
    data = memoryview(side.read(cluster))
    for at in range(0, max(1, len(data)), RAW_PIECE):
        yield bytes(data[at : at + RAW_PIECE])


def _is_text(data: bytes) -> bool:
    return b"\0" not in data[:1024]


def _text_part(data: bytes, at: int, end: int) -> tuple[str, int]:
    """The text of a range, and where it ends: a character that is cut in two belongs to the next part."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data[at:end], final=end >= len(data))
    return text, min(end, len(data)) - len(decoder.getstate()[0])
