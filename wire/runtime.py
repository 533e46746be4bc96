"""What compiled codecs call: the rare paths that would only make the straight-line code longer.

Reading functions take the buffer and a position and return the value and the next position; a position past the end
shows as IndexError or struct.error, which the codec turns into ProtocolError, or at the codec's last check.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.varint import encode_unsigned_varint, unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from barnabas.wire.types import TaggedField

    Buffer = bytes | memoryview

MAX_STRING = 2**15 - 1
"""Kafka's limit for a string in bytes, in the compact form too."""

SMALL = 17
"""Arrays of fewer elements than this have a ready struct.Struct."""


def string_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """The compact length (plus one) of a string."""
    value, pos = unsigned_varint(buf, pos)
    if value > MAX_STRING + 1:
        raise ProtocolError(f"a string of {value - 1} bytes: the most is {MAX_STRING}")
    return value, pos


def unknown_tags(buf: Buffer, pos: int, end: int) -> tuple[tuple[TaggedField, ...], int]:
    """A section of tagged fields of which none is known; `pos` is that of the count."""
    count, pos = unsigned_varint(buf, pos)
    found = []
    for _ in range(count):
        tag, pos = unsigned_varint(buf, pos)
        size, pos = unsigned_varint(buf, pos)
        stop = pos + size
        if stop > end:
            short()
        found.append((tag, bytes(buf[pos:stop])))
        pos = stop
    return tuple(found), pos


def tag_section(known: Sequence[TaggedField], unknown: Iterable[TaggedField], taken: frozenset[int]) -> bytes:
    """The section of tagged fields: known ones and those kept from the peer, tags ascending.

    ValueError when a kept field has a tag that the declaration uses (`taken`).
    """
    section = list(known)
    for tag, data in unknown:
        if tag in taken:
            raise ValueError(f"an unknown tagged field has the tag {tag} of a known one")
        section.append((tag, data))
    if len(section) > 1:
        section.sort(key=lambda entry: entry[0])
    out = [encode_unsigned_varint(len(section))]
    for tag, data in section:
        out += (encode_unsigned_varint(tag), encode_unsigned_varint(len(data)), data)
    return b"".join(out)


def long_length(length: int) -> bytes:
    """A compact length (plus one) of more than one byte."""
    if length > 2**31:
        raise ValueError(f"{length - 1} is longer than a length can say")
    return encode_unsigned_varint(length)


def long_string_length(length: int) -> bytes:
    """A string's compact length (plus one) of more than one byte."""
    if length > MAX_STRING + 1:
        raise ValueError(f"a string of {length - 1} bytes: the most is {MAX_STRING}")
    return encode_unsigned_varint(length)


def records_size(value: Any) -> int:
    """The size of a `records` value in bytes: one piece or several."""
    return sum(map(len, value)) if isinstance(value, list | tuple) else len(value)


def add_records(chunks: list[Any], out: list[bytes], value: Any) -> None:
    """Ends the piece in `out` and puts the records behind it, uncopied."""
    chunks.append(b"".join(out))
    out.clear()
    if isinstance(value, list | tuple):
        chunks.extend(value)
    else:
        chunks.append(value)


def short() -> NoReturn:
    """The message goes on behind the end of the bytes."""
    raise ProtocolError("the message is cut short")


def null(name: str) -> NoReturn:
    """A null where the version does not allow one."""
    raise ProtocolError(f"{name} may not be null")


def null_to_build(name: str) -> NoReturn:
    """A None where the version does not allow a null."""
    raise ValueError(f"{name} may not be null")


def too_many(count: int, name: str) -> NoReturn:
    """An array that the bytes left cannot hold."""
    raise ProtocolError(f"{name} has {count} elements, more than the bytes left can hold")


def tag_size(tag: int) -> NoReturn:
    """A tagged field whose size is not that of its value."""
    raise ProtocolError(f"the tagged field {tag} does not fill its size")


def bad_uuid(name: str) -> NoReturn:
    """A uuid of another length."""
    raise ValueError(f"{name} is not a uuid of 16 bytes")


def unsupported_field(struct_name: str, name: str, version: int) -> NoReturn:
    """A field is set although the version cannot carry it."""
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, f"{struct_name}.{name} is set, but version {version} does not have it"
    )


_structs: dict[str, tuple[Struct, ...]] = {}


def small_structs(letter: str) -> tuple[Struct, ...]:
    """For the arrays of one kind of number: the struct of 0, 1, 2 ... elements."""
    found = _structs.get(letter)
    if found is None:
        found = _structs[letter] = tuple([Struct(f">{count}{letter}") for count in range(SMALL)])
    return found
