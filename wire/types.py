"""Types of message fields, and Kafka's text form of a uuid.

A uuid is 16 raw bytes in memory; Kafka prints it as 22 characters of url-safe base64 without padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Uuid: TypeAlias = bytes
"""16 raw bytes."""

Bytes: TypeAlias = bytes

ZERO_UUID: Uuid = bytes(16)
"""Kafka's Uuid.ZERO_UUID: no id."""

ONE_UUID: Uuid = bytes(15) + b"\x01"
"""Kafka's Uuid.ONE_UUID and METADATA_TOPIC_ID: the topic id of __cluster_metadata."""


class Slice(Protocol):
    """Bytes outside of memory, for example a slice of a segment file: sent with sendfile, or read on demand."""

    def __len__(self) -> int: ...

    def read_from_cache(self) -> memoryview | None:
        """The bytes, unless the disk has to be waited for."""

    def read(self) -> bytes:
        """All bytes of the slice."""

    @property
    def is_in_memory(self) -> bool:
        """Whether it has been read already, so that there is no file to send it from."""


Chunk: TypeAlias = "bytes | memoryview | Slice"
"""A part of an encoded message."""

Records: TypeAlias = "bytes | bytearray | memoryview | Slice | Sequence[Chunk]"
"""The value of a `records` field. Decoding returns a memoryview of the frame."""

TaggedField: TypeAlias = "tuple[int, bytes]"
"""An unknown tagged field: its tag and its bytes."""


def uuid_to_text(value: Uuid) -> str:
    """Kafka's text form: url-safe base64 of the 16 bytes, 22 characters, no padding."""
    from binascii import b2a_base64

    return b2a_base64(value, newline=False)[:22].translate(_URL_SAFE).decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """The 16 bytes of Kafka's text form. ValueError when the text is not 22 characters of url-safe base64."""
    from base64 import urlsafe_b64decode

    if len(text) != 22 or not text.isascii():
        raise ValueError(f"a uuid is 22 characters of url-safe base64, not {text!r}")
    value = urlsafe_b64decode(text + "==")
    if len(value) != 16 or uuid_to_text(value)[:21] != text[:21]:
        raise ValueError(f"a uuid is 22 characters of url-safe base64, not {text!r}")
    return value


def chunk_bytes(chunk: Chunk | bytearray) -> bytes:
    """The bytes of one chunk: a slice is read, a view is copied."""
    return bytes(chunk) if isinstance(chunk, bytes | bytearray | memoryview) else chunk.read()


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
