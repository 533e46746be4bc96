"""Functions that compiled codecs call for rare cases, to keep the generated code short.

Reading functions take the buffer and a position and return the value and the next position. A position past the end
raises IndexError or struct.error, which the codec turns into ProtocolError, or fails the codec's last check.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError, TooManyElements
from barnabas.wire.varint import encode_unsigned_varint, unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.wire.types import TaggedField

    Buffer = bytes | memoryview

MAX_STRING = 2**15 - 1
"""Kafka's limit for a string in bytes, in the compact form too."""

UNLIMITED = 2**62
"""A number of elements that no message has."""

SMALL = 17
"""Arrays of fewer elements than this have a struct.Struct that is made in advance."""


def string_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """Reads the compact length (plus one) of a string."""
    value, pos = unsigned_varint(buf, pos)
    if value > MAX_STRING + 1:
        raise ProtocolError(f"a string of {value - 1} bytes: the maximum is {MAX_STRING}")
    return value, pos


def unknown_tags(buf: Buffer, pos: int, end: int, budget: int = UNLIMITED) -> tuple[tuple[TaggedField, ...], int]:
    """Reads a section of tagged fields none of which is known; `pos` is the position of the count.

    TooManyElements when there are more than `budget`.
    """
    count, pos = unsigned_varint(buf, pos)
    if count > budget:
        over_budget(count, budget, "tagged fields")
    unknown = []
    for _ in range(count):
        tag, pos = unsigned_varint(buf, pos)
        size, pos = unsigned_varint(buf, pos)
        stop = pos + size
        if stop > end:
            truncated()
        unknown.append((tag, bytes(buf[pos:stop])))
        pos = stop
    return tuple(unknown), pos


def tag_section(known: Sequence[TaggedField], unknown: Iterable[TaggedField], taken: frozenset[int]) -> bytes:
    """A section of tagged fields, known and unknown ones, in ascending order of their tags.

    ValueError when an unknown field has a tag of the declaration (`taken`).
    """
    section = list(known)
    for tag, data in unknown:
        if tag in taken:
            raise ValueError(f"an unknown tagged field with the tag {tag} of a known one")
        section.append((tag, data))
    if len(section) > 1:
        section.sort(key=lambda entry: entry[0])
    out = [encode_unsigned_varint(len(section))]
    for tag, data in section:
        out += (encode_unsigned_varint(tag), encode_unsigned_varint(len(data)), data)
    return b"".join(out)


def long_length(length: int) -> bytes:
    """Encodes a compact length (plus one) of more than one byte."""
    if length > 2**31:
        raise ValueError(f"a length of {length - 1}: the maximum is {2**31 - 1}")
    return encode_unsigned_varint(length)


def long_string_length(length: int) -> bytes:
    """Encodes a string's compact length (plus one) of more than one byte."""
    if length > MAX_STRING + 1:
        raise ValueError(f"a string of {length - 1} bytes: the maximum is {MAX_STRING}")
    return encode_unsigned_varint(length)


def records_size(value: Any) -> int:
    """The size of a `records` value in bytes: one chunk or several."""
    return sum(map(len, value)) if isinstance(value, list | tuple) else len(value)


def add_records(chunks: list[Any], out: list[bytes], value: Any) -> None:
    """Adds the bytes in `out` as a chunk, and the records as the next ones without copying them."""
    chunks.append(b"".join(out))
    out.clear()
    if isinstance(value, list | tuple):
        chunks.extend(value)
    else:
        chunks.append(value)


def truncated() -> NoReturn:
    """The message is longer than its bytes."""
    raise ProtocolError("the message is truncated")


def unexpected_null(name: str) -> NoReturn:
    """A null in a field that is not nullable in this version."""
    raise ProtocolError(f"{name} may not be null")


def unexpected_null_to_build(name: str) -> NoReturn:
    """A None in a field that is not nullable in this version."""
    raise ValueError(f"{name} may not be null")


def too_many_elements(count: int, name: str) -> NoReturn:
    """An array with more elements than the remaining bytes can hold."""
    raise ProtocolError(f"{name} has {count} elements, more than the remaining bytes can hold")


def over_budget(count: int, budget: int, name: str) -> NoReturn:
    """An array, or a section of tagged fields, with more elements than the reader allows."""
    raise TooManyElements(count, budget, name)


def wrong_tag_size(tag: int) -> NoReturn:
    """A tagged field whose size differs from the size of its value."""
    raise ProtocolError(f"the tagged field {tag} does not match its size")


def bad_uuid(name: str) -> NoReturn:
    """A uuid that is not 16 bytes."""
    raise ValueError(f"{name}: a uuid has 16 bytes")


def unsupported_field(struct_name: str, name: str, version: int) -> NoReturn:
    """A field is set that the version does not have."""
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, f"{struct_name}.{name} is set, but version {version} does not have it"
    )


_structs: dict[str, tuple[Struct, ...]] = {}


def small_structs(letter: str) -> tuple[Struct, ...]:
    """The structs for arrays of 0, 1, 2 ... `SMALL` - 1 numbers of one type."""
    structs = _structs.get(letter)
    if structs is None:
        structs = _structs[letter] = tuple([Struct(f">{count}{letter}") for count in range(SMALL)])
    return structs


@lru_cache(None)
def short_arrays(letters: str, letter: str) -> tuple[Callable[..., bytes], ...]:
    """What packs values of fixed size, a compact count and the array's numbers, by the count (the length + 1)."""
    return tuple([Struct(f">{letters}B{max(count - 1, 0)}{letter}").pack for count in range(SMALL)])
