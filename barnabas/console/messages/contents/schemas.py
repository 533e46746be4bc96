"""The schemas of a console: files given at its start, texts that users added, and those of a Schema Registry.

They are kept in memory until the console ends. A value with the framing of a Schema Registry (a zero byte, the id of
the schema as four bytes, for Protobuf also the indexes of the message) is decoded with the registry's schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.console.messages.contents.avro import AvroSchema
    from barnabas.console.messages.contents.protobuf import ProtobufSchema

MOST_SCHEMAS = 200
MAX_SCHEMA_BYTES = 1024 * 1024
_NAME = re.compile(r"[\w.@+-][\w.@+ -]{0,99}")
_KINDS = {
    ".avsc": "avro",
    ".json": "avro",
    ".proto": "protobuf",
    ".desc": "descriptor-set",
    ".protoset": "descriptor-set",
}


@dataclass(frozen=True, slots=True)
class NamedSchema:
    """A schema of the console. `source` is where it came from; `messages` are those of Protobuf."""

    name: str
    kind: str
    source: str
    schema: AvroSchema | ProtobufSchema
    messages: tuple[str, ...] = ()
    parsed_from: tuple[str, bytes] = ("", b"")
    """The kind and the bytes that it was added with."""


@dataclass(frozen=True, slots=True)
class Framed:
    """A decoded value with a registry's framing."""

    format: str
    value: Any
    schema: str


class Registry(Protocol):
    """A Schema Registry (`registry.py`)."""

    def schema(self, schema_id: int) -> tuple[str, AvroSchema | ProtobufSchema | None]:
        """The kind (AVRO, PROTOBUF or JSON) and the schema, None for JSON. ValueError with a sentence."""


class Schemas:
    """Schemas by name. Several threads may use it."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry
        self._by_name: dict[str, NamedSchema] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        """Another process parses the schemas itself."""
        return _restored, (self.registry, [(each.name, *each.parsed_from, each.source) for each in self.list()])

    def only(self, text: str) -> Schemas:
        """The registry, and of the schemas only `NAME` or `NAME#MESSAGE`, if there is one."""
        chosen = Schemas(self.registry)
        with self._lock:
            schema = self._by_name.get(text.partition("#")[0])
        if schema is not None:
            chosen._by_name[schema.name] = schema
        return chosen

    def list(self) -> list[NamedSchema]:
        """All schemas, by name."""
        with self._lock:
            return sorted(self._by_name.values(), key=lambda schema: schema.name)

    def add(self, name: str, kind: str, data: bytes, source: str) -> NamedSchema:
        """Add or replace a schema; `kind` is avro, protobuf or descriptor-set. ValueError with a sentence."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a schema: letters, digits and ._@+- only, at most 100")
        if len(data) > MAX_SCHEMA_BYTES:
            raise ValueError(f"a schema of {len(data)} bytes is longer than {MAX_SCHEMA_BYTES}")
        added = _parsed(name, kind, data, source)
        with self._lock:
            if name not in self._by_name and len(self._by_name) >= MOST_SCHEMAS:
                raise ValueError(f"the console has {MOST_SCHEMAS} schemas, and takes no more")
            self._by_name[name] = added
        return added

    def add_file(self, path: Path) -> NamedSchema:
        """Add the schema of a file: .avsc, .json, .proto, .desc or .protoset. ValueError, OSError."""
        kind = _KINDS.get(path.suffix)
        if kind is None:
            raise ValueError(f"{path}: a schema is a file of the kind {', '.join(_KINDS)}")
        try:
            return self.add(path.name, kind, path.read_bytes(), "file")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def remove(self, name: str) -> None:
        """Remove a schema. ValueError if there is none."""
        with self._lock:
            if self._by_name.pop(name, None) is None:
                raise ValueError(f"there is no schema {name!r}")

    def named(self, format_: str, text: str) -> tuple[NamedSchema, str]:
        """The schema `NAME` or `NAME#MESSAGE` for a format, and the message. ValueError with a sentence."""
        name, _, message = text.partition("#")
        with self._lock:
            schema = self._by_name.get(name)
        if schema is None or schema.kind != format_:
            raise ValueError(f"there is no schema {name!r} of {format_}; add it first")
        if message and message not in schema.messages:
            raise ValueError(f"the schema {name!r} has no message {message!r}")
        return schema, message

    # --- decoding; each gives the plain value and what schema was used, or raises ValueError

    def decode_avro(self, data: bytes, text: str) -> tuple[Any, str]:
        """With a schema of the console, or by the registry's framing."""
        if not text:
            return self._decode_framed_as(data, "avro")
        schema: Any = self.named("avro", text)[0].schema
        try:
            return schema.decode(data), text
        except ValueError:
            if data[:1] != b"\0" or len(data) < 5:
                raise
            return schema.decode(data, 5), text  # the framing of a registry that the console does not know

    def decode_protobuf(self, data: bytes, text: str) -> tuple[Any, str]:
        """With a schema of the console, or by the registry's framing."""
        if not text:
            return self._decode_framed_as(data, "protobuf")
        named, message = self.named("protobuf", text)
        schema: Any = named.schema
        return schema.decode(data, message), f"{named.name}#{message or schema.main_type}"

    def _decode_framed_as(self, data: bytes, format_: str) -> tuple[Any, str]:
        if self.registry is None:
            raise ValueError("name a schema, or start the console with --schema-registry URL")
        if data[:1] != b"\0" or len(data) < 5:
            raise ValueError("it does not begin with a schema id of a registry")
        framed = self._decode_with_registry(data)
        if framed.format != format_:
            raise ValueError(f"its schema is of {framed.format}")
        return framed.value, framed.schema

    def decode_framed(self, data: bytes) -> Framed | None:
        """A value with a registry's framing; None if there is no registry, no framing, or no such schema."""
        if self.registry is None or data[:1] != b"\0" or len(data) < 5:
            return None
        try:
            return self._decode_with_registry(data)
        except ValueError:
            return None

    def _decode_with_registry(self, data: bytes) -> Framed:
        assert self.registry is not None
        schema_id = int.from_bytes(data[1:5], "big")
        kind, schema = self.registry.schema(schema_id)
        about = f"registry id {schema_id}"
        typed: Any = schema
        if kind == "AVRO":
            return Framed("avro", typed.decode(data, 5), about)
        if kind == "PROTOBUF":
            from barnabas.console.messages.contents.protobuf import read_indexes

            indexes, at = read_indexes(data, 5)
            message = typed.type_at(indexes)
            return Framed("protobuf", typed.decode(data[at:], message), f"{about}#{message}")
        import msgspec

        return Framed("json", msgspec.json.decode(data[5:]), about)

    # --- encoding

    def encode(self, format_: str, content: Any, text: str) -> bytes:
        """The bytes of a plain value in a schema of the console. ValueError with a sentence."""
        named, message = self.named(format_, text)
        schema: Any = named.schema
        encoded: bytes = schema.encode(content, message) if format_ == "protobuf" else schema.encode(content)
        return encoded


def _restored(registry: Registry | None, added: Sequence[tuple[str, str, bytes, str]]) -> Schemas:
    schemas = Schemas(registry)
    for each in added:
        schema = _parsed_once(*each)
        schemas._by_name[schema.name] = schema
    return schemas


def _parsed(name: str, kind: str, data: bytes, source: str) -> NamedSchema:
    if kind == "avro":
        from barnabas.console.messages.contents.avro import AvroSchema

        return NamedSchema(name, "avro", source, AvroSchema(_decoded(data)), parsed_from=(kind, data))
    from barnabas.console.messages.contents.protobuf import ProtobufSchema

    if kind == "protobuf":
        schema = ProtobufSchema.from_text(name, _decoded(data))
    elif kind == "descriptor-set":
        schema = ProtobufSchema.from_descriptor_set(data)
    else:
        raise ValueError(f"there is no kind of schema {kind!r}; there are avro, protobuf and descriptor-set")
    return NamedSchema(name, "protobuf", source, schema, tuple(schema.types), (kind, data))


_parsed_once = lru_cache(16)(_parsed)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the schema is no UTF-8 text") from None
