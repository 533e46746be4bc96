"""Messages as JSON in the format of Kafka's JsonConverter, which Kafka's tools print and `barnabas wire` uses.

camelCase names; bytes and records as base64, uuids in Kafka's text form; only the fields of the version, tagged ones
only if they differ from their default. Kafka drops unknown tagged fields; here they are in `unknownTaggedFields` (tag
and base64), so that no data is lost.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.wire.codec.fields import parse_versions
from barnabas.wire.codec.runtime import unsupported_field
from barnabas.wire.types import chunk_bytes, uuid_from_text, uuid_to_text

if TYPE_CHECKING:
    from barnabas.wire.api_keys import ApiKey
    from barnabas.wire.codec.fields import Field, StructBase
    from barnabas.wire.schema import Message

M = TypeVar("M", bound="Message")
S = TypeVar("S", bound="StructBase")

UNKNOWN = "unknownTaggedFields"


def json_name(name: str) -> str:
    """Kafka's JSON name of an attribute: `throttleTimeMs` for `throttle_time_ms`."""
    first, *rest = name.split("_")
    return first + "".join([word[:1].upper() + word[1:] for word in rest])


def api_name(key: ApiKey) -> str:
    """The name of an API as Kafka writes it: Produce, JoinGroup."""
    name = json_name(key.name.lower())
    return name[:1].upper() + name[1:]


def to_json(message: StructBase, version: int) -> dict[str, Any]:
    """A message as a JSON value. KafkaError(UNSUPPORTED_VERSION) as `Message.encode`."""
    out: dict[str, Any] = {}
    for field in message.declared:
        value = getattr(message, field.name)
        if version not in _versions(field.versions):
            if not field.ignorable and not field.is_default(value):
                unsupported_field(type(message).__name__, field.name, version)
        elif field.tag < 0 or not field.is_default(value):
            out[json_name(field.name)] = _value_to_json(field, value, version)
    if message.unknown_tagged_fields:
        out[UNKNOWN] = [{"tag": tag, "data": _base64(data)} for tag, data in message.unknown_tagged_fields]
    return out


def from_json(message_class: type[M], value: object, version: int) -> M:
    """A message from a JSON value. ValueError when it is not valid for this version."""
    message_class.at(version)  # KafkaError for an unknown version
    return _struct_from_json(message_class, value, version, message_class.__name__)


def _value_to_json(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.kind == "array":
        return [_single_to_json(field.element_kind, element, version) for element in value]
    return _single_to_json(field.kind, value, version)


def _single_to_json(kind: str, value: Any, version: int) -> Any:
    if kind == "struct":
        return to_json(value, version)
    if kind == "uuid":
        return uuid_to_text(value)
    if kind == "bytes":
        return _base64(value)
    if kind == "records":
        parts = value if isinstance(value, list | tuple) else [value]
        return _base64(b"".join(map(chunk_bytes, parts)))
    return value


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _struct_from_json(struct_class: type[S], value: object, version: int, where: str) -> S:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: expected an object, got {value!r}")
    struct = struct_class()
    names = {UNKNOWN}
    for field in struct_class.declared:
        if version not in _versions(field.versions):
            continue
        name = json_name(field.name)
        names.add(name)
        if name in value:
            setattr(struct, field.name, _value_from_json(field, value[name], version, f"{where}.{name}"))
        elif field.tag < 0:
            raise ValueError(f"{where}: the field {name} is missing, which version {version} requires")
    if excess := value.keys() - names:
        raise ValueError(f"{where}: version {version} has no field {', '.join(sorted(map(str, excess)))}")
    if UNKNOWN in value:
        entries = value[UNKNOWN]
        struct.unknown_tagged_fields = tuple([(int(entry["tag"]), b64decode(entry["data"])) for entry in entries])
    return struct


def _value_from_json(field: Field, value: object, version: int, where: str) -> Any:
    if value is None:
        if version not in _versions(field.nullable):
            raise ValueError(f"{where} may not be null in version {version}")
        return None
    if field.kind != "array":
        return _single_from_json(field.kind, field, value, version, where)
    if not isinstance(value, list):
        raise ValueError(f"{where}: expected an array, got {value!r}")
    kind = field.element_kind
    return [_single_from_json(kind, field, element, version, f"{where}[{n}]") for n, element in enumerate(value)]


def _single_from_json(kind: str, field: Field, value: object, version: int, where: str) -> Any:
    if kind == "struct":
        assert field.struct_class is not None
        return _struct_from_json(field.struct_class, value, version, where)
    expected, name = _JSON_TYPES.get(kind, (int, "a number"))
    if not isinstance(value, expected) or (isinstance(value, bool) and kind != "boolean"):
        raise ValueError(f"{where}: expected {name}, got {value!r}")
    try:
        if kind == "uuid":
            return uuid_from_text(str(value))
        if kind in ("bytes", "records"):
            return b64decode(str(value), validate=True)
    except (ValueError, Base64Error) as error:
        raise ValueError(f"{where}: {error}") from None
    return value


_JSON_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "boolean": (bool, "true or false"),
    "float64": ((int, float), "a number"),
    "string": (str, "a string"),
    "uuid": (str, "a uuid"),
    "bytes": (str, "base64"),
    "records": (str, "base64"),
}

_versions = cache(parse_versions)
