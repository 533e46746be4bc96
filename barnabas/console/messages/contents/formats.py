"""Decodes a key or a value in a format that a user names, or in the first that fits (`guess`).

A format is one of `FORMATS`, or `avro:SCHEMA`, `protobuf:SCHEMA` and `protobuf:SCHEMA#MESSAGE` with the name of a
schema of the console (`schemas.py`). Guessed are, in this order: the framing of a Schema Registry, if there is one;
JSON; text; an Avro object container; a big-endian integer of 4 or 8 bytes; MessagePack; otherwise hexadecimal.

Long values are not decoded (`MAX_DECODED_BYTES`): parsers hold the interpreter's lock, and pages would wait.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from barnabas.console.messages.contents.plain import compact, is_printable, plain_value, pretty
from barnabas.console.messages.contents.schemas import Schemas

GUESS = "guess"
FORMATS = ("guess", "json", "text", "hex", "messagepack", "avro", "protobuf", "integer", "double", "base64")
MAX_DECODED_BYTES = 1024 * 1024
PREVIEW = 300
"""The characters of a value in a list."""
HEX_BYTES = 4096
"""Of which a dump in hexadecimal shows the lines."""


@dataclass(frozen=True, slots=True)
class Content:
    """What bytes mean. `value` is plain (as of JSON); None stands for null, and for bytes that are only shown as text.

    `text` is the form to read, of several lines; `problem` says why the named format did not fit. `schema` names the
    schema that was used.
    """

    format: str
    value: Any
    text: str
    schema: str = ""
    problem: str = ""

    @property
    def line(self) -> str:
        """The first `PREVIEW` characters in one line."""
        if self.format in ("null", "text", "hex", "base64"):
            text = self.text[: PREVIEW + 1]
        else:
            text = compact(self.value)
        text = " ".join(text.split("\n")) if "\n" in text else text
        return text if len(text) <= PREVIEW else text[:PREVIEW] + "…"


class Decoder:
    """Decodes in one format. ValueError with a sentence if there is no such format or schema."""

    def __init__(self, format_: str, schemas: Schemas) -> None:
        name, _, self._schema = format_.partition(":")
        if name not in FORMATS or (self._schema and name not in ("avro", "protobuf")):
            raise ValueError(f"there is no format {format_!r}; there are {', '.join(FORMATS)}")
        self.format = name
        self._schemas = schemas
        if self._schema:
            schemas.named(name, self._schema)

    def __reduce__(self) -> tuple[object, ...]:
        """Another process gets the schema that is used, and no other."""
        format_ = f"{self.format}:{self._schema}" if self._schema else self.format
        return Decoder, (format_, self._schemas.only(self._schema))

    def content(self, data: bytes | None, size: int | None = None) -> Content:
        """What the bytes mean; `size` is the full size if they were cut. Never fails."""
        if data is None:
            return Content("null", None, "null")
        if (size or len(data)) > MAX_DECODED_BYTES or (size is not None and size > len(data)):
            return _cut_content(data, self.format)
        try:
            return self._decode(data)
        except (ValueError, RecursionError) as error:
            problem = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            shown = _text(data) or _hex(data)
            return Content(shown.format, None, shown.text, problem=f"not {self.format}: {problem}")

    def value(self, data: bytes) -> Any:
        """The plain value for a filter; the text if the bytes do not fit the format."""
        if self.format == "guess" and data[:1] in (b"{", b"["):
            try:
                return msgspec.json.decode(data)
            except ValueError:
                pass
        content = self.content(data)
        return content.text if content.value is None and content.format != "json" else content.value

    def _decode(self, data: bytes) -> Content:
        if self.format == "avro":
            return _shown("avro", *self._schemas.decode_avro(data, self._schema))
        if self.format == "protobuf":
            return _shown("protobuf", *self._schemas.decode_protobuf(data, self._schema))
        if self.format == "guess":
            return self._guess(data)
        return _PLAIN_FORMATS[self.format](data)

    def _guess(self, data: bytes) -> Content:
        """The first format that fits."""
        framed = self._schemas.decode_framed(data)
        if framed is not None:
            return _shown(framed.format, framed.value, framed.schema)
        for decode in (_json_container, _text, _container_file, _guessed_integer, _guessed_messagepack):
            content = decode(data)
            if content is not None:
                return content
        return _hex(data)


def _shown(format_: str, value: Any, schema: str = "") -> Content:
    return Content(format_, value, pretty(value), schema)


def _cut_content(data: bytes, format_: str) -> Content:
    """The beginning of a value that is too long to be decoded."""
    head = data[: MAX_DECODED_BYTES // 16]
    for length in range(len(head), max(0, len(head) - 4), -1):  # a character may be cut in two
        text = _text(head[:length])
        if text is not None and format_ != "hex":
            return Content("text", None, text.text)
    return _hex(head)


# --- formats without a schema


def _json(data: bytes) -> Content:
    try:
        return _shown("json", json.loads(data))
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8") from None


def _json_container(data: bytes) -> Content | None:
    """An object or a list; a number or a word is text."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return _json(data)
    except (ValueError, RecursionError):
        return None


def _text(data: bytes) -> Content | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return Content("text", None, text) if is_printable(text) else None


def _forced_text(data: bytes) -> Content:
    return Content("text", None, data.decode(errors="replace"))


def _hex(data: bytes) -> Content:
    return Content("hex", None, hex_dump(data[:HEX_BYTES]) if len(data) > 16 else data.hex(" "))


def hex_dump(data: bytes, start: int = 0) -> str:
    """Lines of 16 bytes: position, bytes, and their ASCII characters."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start + at:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {characters}")
    return "\n".join(lines)


def _messagepack(data: bytes) -> Content:
    try:
        return _shown("messagepack", plain_value(msgspec.msgpack.decode(data, ext_hook=_extension)))
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def _extension(code: int, data: memoryview) -> object:
    return {"extension": code, "data": f"0x{bytes(data).hex()}"}


def _guessed_messagepack(data: bytes) -> Content | None:
    """A map or a list; nearly any byte is a number in MessagePack."""
    first = data[0] if data else 0
    if not (0x81 <= first <= 0x8F or 0x91 <= first <= 0x9F or 0xDC <= first <= 0xDF):
        return None
    try:
        return _messagepack(data)
    except (ValueError, RecursionError):
        return None


def _integer(data: bytes) -> Content:
    if len(data) not in (1, 2, 4, 8):
        raise ValueError(f"{len(data)} bytes are no integer, which has 1, 2, 4 or 8")
    return _shown("integer", int.from_bytes(data, "big", signed=True))


def _guessed_integer(data: bytes) -> Content | None:
    return _integer(data) if len(data) in (4, 8) and data[0] in (0, 0xFF) else None


def _double(data: bytes) -> Content:
    if len(data) not in (4, 8):
        raise ValueError(f"{len(data)} bytes are no floating point number, which has 4 or 8")
    return _shown("double", struct.unpack(">d" if len(data) == 8 else ">f", data)[0])


def _base64(data: bytes) -> Content:
    from base64 import b64encode

    return Content("base64", None, b64encode(data).decode())


def _container_file(data: bytes) -> Content | None:
    """An Avro file, which has its schema in it."""
    if data[:4] != b"Obj\x01":
        return None
    from barnabas.console.messages.contents.avro import read_container

    try:
        return _shown("avro", read_container(io.BytesIO(data)))
    except (ValueError, RecursionError):
        return None


_PLAIN_FORMATS: dict[str, Callable[[bytes], Content]] = {
    "json": _json,
    "text": _forced_text,
    "hex": _hex,
    "messagepack": _messagepack,
    "integer": _integer,
    "double": _double,
    "base64": _base64,
}


# --- the other way: bytes of what a user writes


def encode(format_: str, text: str, schemas: Schemas) -> bytes | None:
    """The bytes of a text in a format, for a record to produce. ValueError with a sentence.

    `null` is no bytes (a value: a tombstone); hex and base64 are bytes as they are; JSON is checked and sent as it is
    written; for MessagePack, Avro and Protobuf the text is JSON. `avro` and `protobuf` need the name of a schema.
    """
    from base64 import b64decode

    name, _, schema = format_.partition(":")
    if name == "null":
        return None
    if name == "text":
        return text.encode(errors="surrogateescape")
    if name == "hex":
        return bytes.fromhex(text.strip().removeprefix("0x"))
    if name == "base64":
        return b64decode(text, validate=True)
    if name == "integer":
        return struct.pack(">q", int(text)) if -(2**63) <= int(text) < 2**63 else _refuse("an integer of 8 bytes")
    content = _parsed(text)
    if name == "json":
        return text.encode()
    if name == "messagepack":
        return msgspec.msgpack.encode(content)
    if name in ("avro", "protobuf") and schema:
        return schemas.encode(name, content, schema)
    raise ValueError(f"records cannot be written in the format {format_!r}")


def _refuse(what: str) -> bytes:
    raise ValueError(f"it is not {what}")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
