"""Record batches of requests, right and wrong ones, and the batches of answers and files as plain values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from barnabas.wire.batches.batch_format import CRC_OFFSET, CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD
from barnabas.wire.batches.compression import compress, decompress
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.varint import encode_varint

NO_ID = -1
_MESSAGE = struct.Struct(">qiIbb")


@dataclass(frozen=True)
class Batch:
    """One batch. Fields that are None have the right value; others may be wrong. `crc` is right unless it is set."""

    values: tuple[bytes | None, ...] = (b"v",)
    keys: tuple[bytes | None, ...] = ()
    headers: int = 0
    """Headers of each record."""
    magic: int = 2
    codec: int = 0
    attributes: int = 0
    """Further bits: 8 LogAppendTime, 16 transactional, 32 control, 64 delete horizon."""
    first_ms: int = 1_700_000_000_000
    step_ms: int = 1
    producer_id: Any = NO_ID
    producer_epoch: Any = -1
    sequence: int = -1
    base_offset: int = 0
    leader_epoch: int = -1
    max_ms: int | None = None
    count: int | None = None
    last_delta: int | None = None
    length: int | None = None
    crc: int | None = None
    offset_gap: int = 0
    """Is added to the offset delta of the last record."""
    extra: bytes = b""
    """After the last record, within the batch."""
    body: bytes | None = None
    """In place of the records."""
    cut: int = 0
    """Bytes that are missing at the end."""

    def __repr__(self) -> str:
        changed = [
            f"{part.name}={value!r}" for part in fields(self) if (value := getattr(self, part.name)) != part.default
        ]
        return f"Batch({', '.join(changed)})"

    def encoded(self, resolve: Callable[[Any], Any]) -> bytes:
        """The bytes; `resolve` gives the value of a `Saved`."""
        data = self._message_set() if self.magic < 2 else self._batch(resolve)
        return data[: len(data) - self.cut] if self.cut else data

    def _batch(self, resolve: Callable[[Any], Any]) -> bytes:
        body = self.body
        if body is None:
            body = b"".join(map(self._record, range(len(self.values)))) + self.extra
            if 0 < self.codec <= 4:
                body = compress(self.codec, body)
        count = len(self.values)
        last_ms = self.first_ms + self.step_ms * max(0, count - 1) if count else -1
        head = [
            self.base_offset,
            _or(self.length, HEADER_SIZE - LOG_OVERHEAD + len(body)),
            self.leader_epoch,
            self.magic,
            0,
            self.codec | self.attributes,
            _or(self.last_delta, count - 1 + self.offset_gap),
            self.first_ms,
            _or(self.max_ms, max(self.first_ms, last_ms)),
            resolve(self.producer_id),
            max(-32768, min(32767, resolve(self.producer_epoch))),
            self.sequence,
            _or(self.count, count),
        ]
        batch = bytearray(HEADER.pack(*head) + body)
        crc = _or(self.crc, crc32c(memoryview(batch)[CRC_START:]))
        struct.pack_into(">I", batch, CRC_OFFSET, crc)
        return bytes(batch)

    def _record(self, index: int) -> bytes:
        gap = self.offset_gap if index == len(self.values) - 1 else 0
        parts = [b"\0", encode_varint(self.step_ms * index), encode_varint(index + gap)]
        key = self.keys[index] if index < len(self.keys) else None
        parts += [_sized(key), _sized(self.values[index]), encode_varint(self.headers)]
        parts += [_sized(b"h%d" % number) + _sized(b"x" if number else None) for number in range(self.headers)]
        fields_of_record = b"".join(parts)
        return encode_varint(len(fields_of_record)) + fields_of_record

    def _message_set(self) -> bytes:
        """Messages of magic 0 or 1; compressed ones are in a wrapper."""
        inner = b"".join(self._message(index, index, self.values[index], 0) for index in range(len(self.values)))
        if not self.codec:
            return inner
        wrapped = compress(self.codec, inner) if self.codec <= 4 else inner
        return self._message(max(0, len(self.values) - 1), 0, wrapped, self.codec)

    def _message(self, offset: int, index: int, value: bytes | None, codec: int) -> bytes:
        key = self.keys[index] if index < len(self.keys) and not codec else None
        rest = struct.pack(">bb", self.magic, codec | (self.attributes & 8))
        if self.magic == 1:
            rest += struct.pack(">q", self.first_ms + self.step_ms * index)
        rest += _plain_sized(key) + _plain_sized(value)
        crc = zlib.crc32(rest) if self.crc is None else self.crc
        return struct.pack(">qiI", offset, len(rest) + 4, crc) + rest


@dataclass(frozen=True)
class Batches:
    """Several batches, one after the other, and bytes after them."""

    parts: tuple[Batch, ...] = ()
    rest: bytes = b""

    def encoded(self, resolve: Callable[[Any], Any]) -> bytes:
        return b"".join(part.encoded(resolve) for part in self.parts) + self.rest


def _or(value: int | None, usual: int) -> int:
    return usual if value is None else value


def _sized(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def _plain_sized(content: bytes | None) -> bytes:
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


HEAD_NAMES = (
    "base_offset", "length", "partition_leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count",
)  # fmt: skip


def decoded_batches(data: bytes) -> list[dict[str, Any]]:
    """The batches of an answer or a file. The body is decompressed; the CRC is replaced by whether it is right."""
    batches: list[dict[str, Any]] = []
    at = 0
    while at < len(data):
        if len(data) - at < HEADER_SIZE or data[at + 16] != 2:
            batches.append({"bytes": data[at:]})
            break
        batch = dict(zip(HEAD_NAMES, HEADER.unpack_from(data, at), strict=True))
        end = at + batch["length"] + LOG_OVERHEAD
        if end > len(data):
            batches.append({"incomplete_at": batch["base_offset"]})
            break
        batch["crc"] = batch["crc"] == crc32c(data[at + CRC_START : end])
        batch["body"] = _body(data[at + HEADER_SIZE : end], batch["attributes"] & 7)
        if batch["attributes"] & 7:
            del batch["length"]  # compressors differ
        batches.append(batch)
        at = end
    return batches


def _body(body: bytes, codec: int) -> bytes:
    try:
        return bytes(decompress(codec, body)) if codec else body
    except Exception:
        return body
