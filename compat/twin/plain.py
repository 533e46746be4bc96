"""Messages as plain values, and back: dictionaries, lists, numbers, strings, bytes.

A request may leave out fields, which then have Kafka's defaults, and may have fields that its version has not: these
are not sent, so that one dictionary serves all versions. Records of an answer are decoded (`compat.twin.batches`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.fields import StructBase, parse_versions
from barnabas.wire.codec.json_form import api_name
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from compat.twin.batches import decoded_batches

APIS = {api_name(key): key for key in ApiKey}
"""API keys by Kafka's names."""


@cache
def _fields(struct: type[StructBase], version: int) -> dict[str, Any]:
    return {field.name: field for field in struct.declared if version in parse_versions(field.versions)}


def request_of(api: str, version: int, values: dict[str, Any]) -> Message:
    """The message with these values. KeyError for a field that no version has."""
    request_class = message_for(APIS[api])[0]
    return _struct(request_class, values, version)


def _struct(struct: Any, values: dict[str, Any], version: int) -> Any:
    known = _fields(struct, version)
    made = struct()
    for name, value in values.items():
        field = known.get(name)
        if field is None:
            if name not in {other.name for other in struct.declared}:
                raise KeyError(f"{struct.__name__} has no field {name}")
            continue
        if value is None and version not in parse_versions(field.nullable):
            continue
        inner = field.struct_class
        if value is not None and inner is not None:
            if field.kind == "array":
                value = [_struct(inner, part, version) for part in value]
            else:
                value = _struct(inner, value, version)
        setattr(made, name, value)
    return made


def plain(message: StructBase, version: int) -> dict[str, Any]:
    """The fields of a message that its version has."""
    values: dict[str, Any] = {}
    for name, field in _fields(type(message), version).items():
        value = getattr(message, name)
        if value is not None:
            if field.kind == "array":
                if field.struct_class is not None:
                    value = [plain(part, version) for part in value]
            elif field.kind == "struct":
                value = plain(value, version)
            elif field.kind == "records":
                parts = value if isinstance(value, list | tuple) else [value]
                value = decoded_batches(b"".join(map(chunk_bytes, parts)))
        values[name] = value
    if message.unknown_tagged_fields:
        values["unknown_tagged_fields"] = list(message.unknown_tagged_fields)
    return values


def request_fields(api: str, version: int) -> list[str]:
    """The paths of all fields of a request in a version, dotted."""
    paths: list[str] = []

    def walk(struct: Any, before: str) -> None:
        for name, field in _fields(struct, version).items():
            if field.struct_class is not None:
                walk(field.struct_class, f"{before}{name}.")
            paths.append(before + name)

    walk(message_for(APIS[api])[0], "")
    return paths
