"""Sends an earlier request again with one field changed: the neighbour that shows whether the field has an effect."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from barnabas.wire.codec.fields import parse_versions
from barnabas.wire.registry import message_for
from compat.twin.plain import APIS
from compat.twin.steps import Saved, Step
from compat.twin.world import World

AGAIN = 20
"""How many of the last steps are varied."""
WAITS = {"max_wait_ms": (0, 1, 50), "timeout_ms": (1000, 5000), "min_bytes": (0, 1, -1), "wait_ms": (0, 1)}
"""Values of fields that make a broker wait."""
NEVER_ANSWERED = {("AlterConfigs", "resources"), ("AddPartitionsToTxn", "transactions")}
"""Kafka answers neither a resource that is named twice nor an empty list of transactions."""
NUMBERS = {
    "int8": (0, 1, 2, 3, -1, 127, -128),
    "int16": (0, 1, 2, -1, -2, 32767, -32768),
    "int32": (0, 1, 2, 3, -1, -2, 100, 2**31 - 1, -(2**31)),
    "int64": (0, 1, 2, 3, -1, -2, -3, -4, -5, 1000, 2**63 - 1, -(2**63)),
}


def vary(world: World) -> None:
    """Repeat one of the last requests, changed in one field of any depth."""
    step = world.random.choice(world.steps[-AGAIN:])
    if step.later or step.varied:
        return
    request = deepcopy(step.request)
    path = change(world, message_for(APIS[step.api])[0], request, step.version)
    if path:
        settle = "metadata" if step.settle else ""
        world.steps.append(replace(step, request=request, varied=path, saves={}, settle=settle))


def change(world: World, struct: Any, values: dict[str, Any], version: int) -> str:
    """Change one field of a struct's values or of a struct in it; the dotted path of the field, or nothing."""
    known = [field for field in struct.declared if version in parse_versions(field.versions)]
    if not known:
        return ""
    field = world.random.choice(known)
    inner = field.struct_class
    is_struct = field.kind == "struct" and field.has_fresh_default
    value = values.get(field.name, {} if is_struct else field.make_default())
    values.setdefault(field.name, value)
    if inner is not None and (value or is_struct) and not world.chance(0.15):
        part = world.random.choice(value) if field.kind == "array" else value
        if isinstance(part, dict):
            path = change(world, inner, part, version)
            return path and f"{field.name}.{path}"
    if (struct.__name__.removesuffix("Request"), field.name) in NEVER_ANSWERED:
        return ""
    values[field.name] = _other(world, field, value, version)
    return str(field.name)


def _other(world: World, field: Any, value: Any, version: int) -> Any:
    """Another value of a field."""
    if field.kind == "records":  # Kafka never answers a partition without records
        return world.pick(b"", value, b"\0" * 70)
    if value is not None and version in parse_versions(field.nullable) and world.chance(0.2):
        return None
    if field.name in WAITS:
        return world.pick(*WAITS[field.name])
    if field.kind in NUMBERS:
        if isinstance(value, Saved):
            return replace(value, plus=world.pick(1, -1))
        usual = [value + 1, value - 1] if isinstance(value, int) and abs(value) < 100 else []
        return world.pick(*usual, *NUMBERS[field.kind])
    if field.kind == "boolean":
        return not value
    if field.kind == "string":
        return world.pick("", f"{value}x", "{s}other", "a b", "x" * 300)
    if field.kind == "uuid":
        return world.pick(bytes(16), bytes(range(16)), b"\xff" * 16)
    if field.kind == "array":
        elements = list(value or [])
        return world.pick([], elements * 2, elements[:1], elements)
    return value


def paths_varied(steps: list[Step]) -> set[tuple[str, int, str]]:
    """API, version and path of the fields that a sequence varies."""
    return {(step.api, step.version, step.varied) for step in steps if step.varied}
