"""Kafka's primitive types as constructs: they parse and build on a stream, and emit code for the compiled codec.

Parsing and building on a stream raise construct's `ConstructError`. `min_size` is the smallest encoded size of a value
in bytes; arrays check their count with it. A length is an int16 or int32, in flexible versions an unsigned varint of
length + 1 (KIP-482); -1, or 0 in the compact form, is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from construct import Bytes, Construct, FormatField, IntegerError, StreamError, StringError
from construct.core import stream_read, stream_write

from barnabas.wire.codec.emit import BuildGen, ParseGen
from barnabas.wire.codec.runtime import MAX_STRING
from barnabas.wire.errors import ProtocolError
from barnabas.wire.types import chunk_bytes
from barnabas.wire.varint import MAX_UNSIGNED_VARINT, encode_unsigned_varint, unsigned_varint

if TYPE_CHECKING:  # construct is generic for the type checker only
    AnyConstruct = Construct[Any, Any]
    AnyFormatField = FormatField[Any, Any]
else:
    AnyConstruct = Construct
    AnyFormatField = FormatField


def reading(code: Any) -> ParseGen:
    """The ParseGen. NotImplementedError for construct's own CodeGen, which then uses the interpreted code."""
    if not isinstance(code, ParseGen):
        raise NotImplementedError
    return code


def writing(code: Any) -> BuildGen:
    """The BuildGen; as `reading`."""
    if not isinstance(code, BuildGen):
        raise NotImplementedError
    return code


def field_name(expression: str) -> str:
    """The field in an expression such as `m3.topic_id`, as a literal for an error message."""
    return repr(expression.rpartition(".")[2])


class Fixed(AnyFormatField):
    """A number of fixed size, big endian; neighbours are fused into one struct.Struct when compiled."""

    def __init__(self, letter: str) -> None:
        super().__init__(">", letter)  # type: ignore[call-arg]  # the stubs know only __new__
        self.cell = letter
        self.min_size = self.length

    def _emitparse(self, code: Any) -> str:
        reader = reading(code)
        reader.cell(self.cell, reader.target)
        return reader.target

    def _emitbuild(self, code: Any) -> str:
        writer = writing(code)
        writer.cell(self.cell, writer.source)
        return writer.source


class FixedBytes(Bytes):
    """Raw bytes of fixed size: a uuid."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.cell = f"{length}s"
        self.min_size = length

    def _emitparse(self, code: Any) -> str:
        reader = reading(code)
        reader.cell(self.cell, reader.target)
        return reader.target

    def _emitbuild(self, code: Any) -> str:
        writer = writing(code)
        # struct would pad or truncate it without an error
        with writer.block(f"if len({writer.source}) != {self.length}:"):
            writer.line(f"bad_uuid({field_name(writer.source)})")
        writer.cell(self.cell, writer.source)
        return writer.source


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

    def _parse(self, stream: Any, context: Any, path: str) -> int:  # noqa: ARG002
        data = b"\x80"
        while data[-1] >= 0x80 and len(data) <= 5:
            data += stream_read(stream, 1, path)
        try:
            return unsigned_varint(data, 1)[0]
        except ProtocolError as error:
            raise IntegerError(str(error), path=path) from None

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:  # noqa: ARG002
        if not 0 <= obj <= MAX_UNSIGNED_VARINT:
            raise IntegerError(f"{obj} is not an unsigned 32 bit number", path=path)
        data = encode_unsigned_varint(obj)
        stream_write(stream, data, len(data), path)
        return obj


UNSIGNED_VARINT = UnsignedVarint()


class Length(AnyConstruct):
    """The length of a string, of bytes or of an array; below 0 is null, written as -1.

    `cell` is the struct letter of the number; "" is the compact form.
    """

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.cell = cell
        self.compact = cell == ""
        self.number: AnyConstruct = UNSIGNED_VARINT if self.compact else {"h": INT16, "l": INT32}[cell]
        self.min_size = {"": 1, "h": 2, "l": 4}[cell]
        self.most = {"": 2**31 - 1, "h": 2**15 - 1, "l": 2**31 - 1}[cell]

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return int(self.number._parse(stream, context, path)) - self.compact

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        if obj > self.most:
            raise StringError(f"a length of {obj}: the maximum is {self.most}", path=path)
        self.number._build(obj + self.compact, stream, context, path)
        return obj


SHORT_LENGTH = Length("h")
LONG_LENGTH = Length("l")
COMPACT_LENGTH = Length("")


class Sized(AnyConstruct):
    """A length and that many bytes; may be nullable."""

    most = 2**31 - 1
    long_read = "unsigned_varint"
    long_write = "long_length"

    def __init__(self, length: Length, nullable: bool) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable
        self.min_size = length.min_size

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.length._parse(stream, context, path)
        if count < 0:
            if not self.nullable:
                raise StreamError("null in a field that is not nullable in this version", path=path)
            return None
        if count > self.most:
            raise StringError(f"{count} bytes: the maximum is {self.most}", path=path)
        try:
            return self.from_wire(stream_read(stream, count, path))
        except UnicodeError as error:
            raise StringError(f"not UTF-8: {error}", path=path) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            if not self.nullable:
                raise StringError("null in a field that is not nullable in this version", path=path)
            self.length._build(-1, stream, context, path)
            return obj
        try:
            data = self.to_wire(obj)
        except (TypeError, AttributeError, UnicodeError) as error:
            raise StringError(f"invalid value {obj!r}: {error}", path=path) from None
        if len(data) > self.most:
            raise StringError(f"{len(data)} bytes: the maximum is {self.most}", path=path)
        self.length._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj

    def _emitparse(self, code: Any) -> str:
        reader = reading(code)
        target, compact = reader.target, self.length.compact
        size = reader.length(compact, self.length.cell, self.long_read)
        with reader.block(f"if {size}:" if compact else f"if {size} >= 0:"):
            reader.line(f"stop = pos + {size}{' - 1' if compact else ''}")
            reader.line(f"{target} = {self.slice(reader.views)}")
            reader.line("pos = stop")
        with reader.block("else:"):
            reader.line(f"{target} = None" if self.nullable else f"unexpected_null({field_name(target)})")
        return target

    def _emitbuild(self, code: Any) -> str:
        writer = writing(code)
        source, plus = writer.source, " + 1" if self.length.compact else ""
        data, size = writer.name("s"), writer.name("n")
        writer.line(f"{data} = {source}")
        with writer.block(f"if {data} is None:"):
            if self.nullable:
                writer.line(f"{size} = {0 if plus else -1}")
                writer.line(f"{data} = b''")
            else:
                writer.line(f"unexpected_null_to_build({field_name(source)})")
        with writer.block("else:"):
            if self.encoding:
                writer.line(f"{data} = {data}{self.encoding}")
            writer.line(f"{size} = {self.size}({data}){plus}")
        writer.length(size, self.length.compact, self.length.cell, self.long_write)
        self.emit_contents(writer, data, size)
        return source

    encoding = ""
    size = "len"

    def emit_contents(self, writer: BuildGen, data: str, size: str) -> None:  # noqa: ARG002
        """Emits code that writes the bytes after the length."""
        writer.line(f"w({data})")

    def slice(self, views: bool) -> str:
        """The value of `buf[pos:stop]` as an expression; `views`: buf is a memoryview."""
        raise NotImplementedError

    def from_wire(self, data: bytes) -> Any:
        """Decodes a value."""
        raise NotImplementedError

    def to_wire(self, value: Any) -> bytes:
        """Encodes a value."""
        raise NotImplementedError


class String(Sized):
    """UTF-8, at most 32767 bytes."""

    most = MAX_STRING
    long_read = "string_length"
    long_write = "long_string_length"
    encoding = ".encode()"

    def slice(self, views: bool) -> str:
        return "str(buf[pos:stop], 'utf-8')" if views else "buf[pos:stop].decode()"

    def from_wire(self, data: bytes) -> str:
        return data.decode()

    def to_wire(self, value: Any) -> bytes:
        return str.encode(value)


class ByteString(Sized):
    """Bytes, copied out of the frame."""

    def slice(self, views: bool) -> str:
        return "bytes(buf[pos:stop])" if views else "buf[pos:stop]"

    def from_wire(self, data: bytes) -> bytes:
        return data

    def to_wire(self, value: Any) -> bytes:
        return b"".join((value,))  # bytes(value) would accept a number as a size


class RecordBytes(Sized):
    """Record batches: parsed to a view of the frame; built from one chunk or several, also from slices of files."""

    size = "records_size"

    def slice(self, views: bool) -> str:
        assert views
        return "buf[pos:stop]"

    def emit_contents(self, writer: BuildGen, data: str, size: str) -> None:
        with writer.block(f"if {size} > {int(self.length.compact)}:"):
            writer.line(f"add_records(chunks, out, {data})")

    def from_wire(self, data: bytes) -> memoryview:
        return memoryview(data)

    def to_wire(self, value: Any) -> bytes:
        if isinstance(value, list | tuple):
            return b"".join(map(chunk_bytes, value))
        return chunk_bytes(value)
