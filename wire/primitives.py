"""Kafka's primitive types as constructs: they parse and build on a stream, and emit code for the compiled codec.

Errors of the interpreted side are construct's own (`ConstructError`). `min_size` is the least number of bytes a value
takes: the array-count guard divides by it. Lengths: int16 or int32 in old versions, unsigned varint of length + 1 in
flexible ones (KIP-482); -1 or 0 is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from construct import Bytes, Construct, FormatField, IntegerError, StreamError, StringError
from construct.core import stream_read, stream_write

from wire.types import chunk_bytes

if TYPE_CHECKING:  # construct is generic for the type checker only
    AnyConstruct = Construct[Any, Any]
    AnyFormatField = FormatField[Any, Any]
else:
    AnyConstruct = Construct
    AnyFormatField = FormatField

MAX_UNSIGNED_VARINT = 2**32 - 1


def encode_unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, lowest first, the high bit on all bytes but the last."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Fixed(AnyFormatField):
    """A number of fixed size, big endian; neighbours are fused into one struct.Struct when compiled."""

    def __init__(self, letter: str) -> None:
        super().__init__(">", letter)
        self.cell = letter
        self.min_size = self.length


class FixedBytes(Bytes):
    """Raw bytes of fixed size: a uuid."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.cell = f"{length}s"
        self.min_size = length


INT8 = Fixed("b")
INT16 = Fixed("h")
UINT16 = Fixed("H")
INT32 = Fixed("l")
UINT32 = Fixed("L")
INT64 = Fixed("q")
FLOAT64 = Fixed("d")
BOOLEAN = Fixed("?")
UUID = FixedBytes(16)


class UnsignedVarint(AnyConstruct):
    """At most five bytes, at most 32 bits."""

    min_size = 1

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = shift = 0
        while True:
            byte = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise IntegerError("an unsigned varint of more than five bytes", path=path)
        if value > MAX_UNSIGNED_VARINT:
            raise IntegerError("an unsigned varint of more than 32 bits", path=path)
        return value

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        if not 0 <= obj <= MAX_UNSIGNED_VARINT:
            raise IntegerError(f"{obj} is not an unsigned 32 bit number", path=path)
        data = encode_unsigned_varint(obj)
        stream_write(stream, data, len(data), path)
        return obj


UNSIGNED_VARINT = UnsignedVarint()


class Length(AnyConstruct):
    """The length of a string, of bytes or of an array: -1 is null. `cell` is the old versions' number; "" is compact."""

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.cell = cell
        self.compact = cell == ""
        self.number: AnyConstruct = UNSIGNED_VARINT if self.compact else {"h": INT16, "l": INT32}[cell]
        self.min_size = {"": 1, "h": 2, "l": 4}[cell]
        self.most = {"": 2**31 - 1, "h": 2**15 - 1, "l": 2**31 - 1}[cell]

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = int(self.number._parse(stream, context, path)) - self.compact
        if value < -1:
            raise StreamError(f"the length {value}", path=path)
        return value

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        if obj > self.most:
            raise StringError(f"{obj} is longer than the {self.most} that the length can say", path=path)
        self.number._build(obj + self.compact, stream, context, path)
        return obj


SHORT_LENGTH = Length("h")
LONG_LENGTH = Length("l")
COMPACT_LENGTH = Length("")


class Sized(AnyConstruct):
    """A length and that many bytes, perhaps null."""

    def __init__(self, length: Length, nullable: bool) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable
        self.min_size = length.min_size

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.length._parse(stream, context, path)
        if count < 0:
            if not self.nullable:
                raise StreamError("null where the version does not allow it", path=path)
            return None
        return self.from_wire(stream_read(stream, count, path), path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            if not self.nullable:
                raise StringError("null where the version does not allow it", path=path)
            self.length._build(-1, stream, context, path)
            return obj
        data = self.to_wire(obj, path)
        self.length._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj

    def from_wire(self, data: bytes, path: str) -> Any:
        """The value of the bytes."""
        raise NotImplementedError

    def to_wire(self, value: Any, path: str) -> bytes:
        """The bytes of the value."""
        raise NotImplementedError


class String(Sized):
    """UTF-8."""

    def from_wire(self, data: bytes, path: str) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise StringError(f"not UTF-8: {error.reason}", path=path) from None

    def to_wire(self, value: Any, path: str) -> bytes:
        if not isinstance(value, str):
            raise StringError(f"a string is needed, not {value!r}", path=path)
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise StringError(f"no UTF-8 for it: {error.reason}", path=path) from None


class ByteString(Sized):
    """Bytes, copied out of the frame."""

    def from_wire(self, data: bytes, path: str) -> bytes:
        return data

    def to_wire(self, value: Any, path: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise StringError(f"bytes are needed, not {value!r}", path=path)
        return bytes(value)


class RecordBytes(Sized):
    """Record batches: a view of the frame; on the way out one piece or several, some of them slices of files."""

    def from_wire(self, data: bytes, path: str) -> memoryview:
        return memoryview(data)

    def to_wire(self, value: Any, path: str) -> bytes:
        if isinstance(value, list | tuple):
            return b"".join(map(chunk_bytes, value))
        return chunk_bytes(value)
