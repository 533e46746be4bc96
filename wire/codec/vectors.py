"""Checks test vectors of messages: a value must encode to its bytes and the bytes decode to the value.

Both the compiled and the interpreted codec are checked. A vector is a line with a JSON object,
`{"message": "ProduceRequestData", "version": 9, "value": {...}, "hex": "..."}`, whose value has the format of Kafka's
JsonConverter. If Kafka had written the records before the conversion, the value has "" for them; then their content is
not compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from construct import ConstructError

from barnabas.wire.codec.json_form import from_json, json_name, to_json
from barnabas.wire.codec.message_codec import holds_records
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.registry import message_named

if TYPE_CHECKING:
    from barnabas.wire.codec.fields import StructBase
    from barnabas.wire.schema import Message

FAILURES = (ProtocolError, KafkaError, ValueError, ConstructError)


def check_line(line: str) -> str | None:
    """The first problem of a vector in a line of JSON, or None. Never raises."""
    try:
        vector = json.loads(line)
        name, version = vector["message"], vector["version"]
        value, data = vector["value"], bytes.fromhex(vector["hex"])
    except (ValueError, KeyError, TypeError) as error:
        return f"not a vector: {error!r}"
    try:
        message_class = message_named(name)
    except (KeyError, AttributeError):
        return f"{name}: no such message"
    if not isinstance(version, int) or version not in message_class.versions:
        return f"{name} v{version}: no such version"
    wrong = check(message_class, version, value, data)
    return f"{name} v{version}: {wrong}" if wrong else None


def check(message_class: type[Message], version: int, value: Mapping[str, Any], data: bytes) -> str | None:
    """The first problem of a vector, or None."""
    plain = message_class.at(version)
    readers: dict[str, Callable[[bytes], Message]] = {
        "compiled": lambda source: message_class.decode(source, version),
        "interpreted": plain.parse,
    }
    for how, read in readers.items():
        try:
            decoded = read(data)
            actual = to_json(decoded, version)
        except FAILURES as error:
            return f"does not decode ({how}): {error}"
        value = _with_records(message_class, value, actual)
        if _canonical(actual) != _canonical(value):
            return f"decodes ({how}) to {_first_difference(value, actual)}"
    return _check_encoding(message_class, version, value, data)


def _check_encoding(message_class: type[Message], version: int, value: Mapping[str, Any], data: bytes) -> str | None:
    writers: dict[str, Callable[[Message], bytes]] = {
        "compiled": lambda message: message.encode(version),
        "interpreted": message_class.at(version).build,
    }
    for how, write in writers.items():
        try:
            encoded = write(from_json(message_class, value, version))
        except FAILURES as error:
            return f"does not encode ({how}): {error}"
        if encoded != data:
            at = next((n for n, (a, b) in enumerate(zip(encoded, data, strict=False)) if a != b), None)
            where = f"at byte {at}" if at is not None else f"in length: {len(encoded)} for {len(data)}"
            return f"encodes ({how}) to other bytes, {where}"
    return None


def _with_records(struct_class: type[StructBase], value: Any, actual: Any) -> Any:
    """The value, with "" for records replaced by the records found."""
    if not isinstance(value, dict) or not isinstance(actual, dict) or not holds_records(struct_class.declared):
        return value
    filled = dict(value)
    for field in struct_class.declared:
        name = json_name(field.name)
        old, new = value.get(name), actual.get(name)
        if field.kind == "records" and old == "" and isinstance(new, str):
            filled[name] = new
        elif field.kind == "array" and field.struct_class and isinstance(old, list) and isinstance(new, list):
            inner = field.struct_class
            filled[name] = [_with_records(inner, *pair) for pair in zip(old, new, strict=False)] + old[len(new) :]
    return filled


def _canonical(value: object) -> str:
    """JSON text, which unlike == distinguishes 1, true and 1.0."""
    return json.dumps(value, sort_keys=True)


def _first_difference(expected: Any, actual: Any, where: str = "") -> str:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            if _canonical(expected.get(key, "(nothing)")) != _canonical(actual.get(key, "(nothing)")):
                return _first_difference(expected.get(key, "(nothing)"), actual.get(key, "(nothing)"), f"{where}.{key}")
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for n, (element, other) in enumerate(zip(expected, actual, strict=True)):
            if _canonical(element) != _canonical(other):
                return _first_difference(element, other, f"{where}[{n}]")
    return f"{where.lstrip('.') or 'the value'} = {json.dumps(actual)} instead of {json.dumps(expected)}"
