"""A message as JSON, in the shape of Kafka's JsonConverter classes.

camelCase names, bytes and records as base64, uuids as url-safe base64, tagged fields at their default left out.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from wire.schema import parse_versions
from wire.types import uuid_to_text

if TYPE_CHECKING:
    from wire.schema import Field, Struct


def to_json(message: Struct, version: int) -> dict[str, object]:
    """The fields that the version has."""
    return {
        camel_case(field.name): _value(field.element_kind if field.kind == "array" else field.kind, value, version)
        for field in message.declared
        if version in parse_versions(field.versions)
        for value in (getattr(message, field.name),)
        if not _is_left_out(field, value)
    }


def _is_left_out(field: Field, value: object) -> bool:
    return field.tag >= 0 and field.is_default(value)


def _value(kind: str, value: object, version: int) -> object:
    if value is None:
        return None
    if isinstance(value, list):
        return [_value(kind, element, version) for element in value]
    if kind == "struct":
        return to_json(value, version)  # type: ignore[arg-type]
    if kind == "uuid":
        return uuid_to_text(value)  # type: ignore[arg-type]
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    return value


def camel_case(name: str) -> str:
    """Kafka's name of a field."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
