"""Makes the construct of one version of a declared message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire import primitives
from barnabas.wire.composites import Array, NullableStruct
from barnabas.wire.fields import parse_versions
from barnabas.wire.primitives import COMPACT_LENGTH, LONG_LENGTH, SHORT_LENGTH, ByteString, RecordBytes, Sized, String
from barnabas.wire.structs import StructOfVersion, TaggedFields

if TYPE_CHECKING:
    from barnabas.wire.fields import Field, StructBase
    from barnabas.wire.primitives import AnyConstruct

_FIXED: dict[str, AnyConstruct] = {
    "int8": primitives.INT8,
    "int16": primitives.INT16,
    "uint16": primitives.UINT16,
    "int32": primitives.INT32,
    "uint32": primitives.UINT32,
    "int64": primitives.INT64,
    "float64": primitives.FLOAT64,
    "boolean": primitives.BOOLEAN,
    "uuid": primitives.UUID,
}

_SIZED: dict[str, type[Sized]] = {"string": String, "bytes": ByteString, "records": RecordBytes}


def construct_of(struct_class: type[StructBase], version: int, flexible: bool) -> StructOfVersion:
    """The construct of one version of a struct; `flexible`: whether this version of the message is (KIP-482)."""
    members: list[tuple[Field, AnyConstruct]] = []
    absent: list[Field] = []
    known: dict[int, tuple[Field, AnyConstruct]] = {}
    for field in struct_class.declared:
        if version not in parse_versions(field.versions):
            absent.append(field)
        elif field.tag >= 0:
            known[field.tag] = (field, _field_construct(field, version, flexible))
        else:
            members.append((field, _field_construct(field, version, flexible)))
    tagged = TaggedFields(dict(sorted(known.items()))) if flexible else None
    return StructOfVersion(struct_class, version, members, absent, tagged)


def _field_construct(field: Field, version: int, flexible: bool) -> AnyConstruct:
    nullable = version in parse_versions(field.nullable)
    if field.kind == "array":
        element = field.struct_class
        subcon = (
            construct_of(element, version, flexible) if element else _primitive(field.element_kind, flexible, False)
        )
        return Array(subcon, COMPACT_LENGTH if flexible else LONG_LENGTH, nullable)
    if field.kind == "struct":
        assert field.struct_class is not None
        inner = construct_of(field.struct_class, version, flexible)
        return NullableStruct(inner, tagged=field.tag >= 0) if nullable else inner
    return _primitive(field.kind, flexible and field.compact, nullable)


def _primitive(kind: str, flexible: bool, nullable: bool) -> AnyConstruct:
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    length = COMPACT_LENGTH if flexible else SHORT_LENGTH if kind == "string" else LONG_LENGTH
    return _SIZED[kind](length, nullable)
