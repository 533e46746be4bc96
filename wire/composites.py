"""Arrays, structs and tagged fields as constructs.

A struct parses to an object of its declared class and builds from one. What a version lacks gets Kafka's default when
parsed; when built, it must be at its default or be ignorable. KIP-482 (tagged fields), KIP-893 (nullable structs).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, cast

import construct
from construct import IntegerError, RangeError, StreamError
from construct.core import stream_read, stream_size, stream_tell, stream_write

from wire.errors import ErrorCode, KafkaError
from wire.primitives import INT8, UNSIGNED_VARINT, AnyConstruct, Length

if TYPE_CHECKING:
    from wire.schema import Field, Struct


class Array(AnyConstruct):
    """A count and that many elements, perhaps null. The count may not exceed what the bytes left can hold."""

    def __init__(self, subcon: AnyConstruct, length: Length, nullable: bool) -> None:
        super().__init__()
        self.subcon = subcon
        self.length = length
        self.nullable = nullable
        self.min_size = length.min_size
        self.element_size = max(1, subcon.min_size)  # type: ignore[attr-defined]

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.length._parse(stream, context, path)
        if count < 0:
            if not self.nullable:
                raise StreamError("null where the version does not allow it", path=path)
            return None
        if count * self.element_size > stream_size(stream) - stream_tell(stream, path):
            raise RangeError(f"an array of {count} elements does not fit the bytes left", path=path)
        return [self.subcon._parse(stream, context, path) for _ in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            if not self.nullable:
                raise RangeError("null where the version does not allow it", path=path)
            self.length._build(-1, stream, context, path)
            return obj
        self.length._build(len(obj), stream, context, path)
        for element in obj:
            self.subcon._build(element, stream, context, path)
        return obj


class NullableStruct(AnyConstruct):
    """A byte, -1 for null, then the struct (KIP-893)."""

    min_size = 1

    def __init__(self, subcon: StructOfVersion) -> None:
        super().__init__()
        self.subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return None if INT8._parse(stream, context, path) < 0 else self.subcon._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        INT8._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj


class TaggedFields(AnyConstruct):
    """The section at the end of a flexible struct: a count, then tag, size and bytes of each field, tags ascending.

    Parses onto the object of the struct, which the context holds as `_owner`; builds from it.
    """

    min_size = 1

    def __init__(self, known: dict[int, tuple[Field, AnyConstruct]]) -> None:
        super().__init__()
        self.known = known
        self.flagbuildnone = True

    def parse_onto(self, owner: Struct, stream: Any, context: Any, path: str) -> None:
        """Sets what the section holds on `owner`."""
        unknown = []
        for _ in range(UNSIGNED_VARINT._parse(stream, context, path)):
            tag = UNSIGNED_VARINT._parse(stream, context, path)
            data = stream_read(stream, UNSIGNED_VARINT._parse(stream, context, path), path)
            if tag not in self.known:
                unknown.append((tag, data))
                continue
            field, subcon = self.known[tag]
            inner = io.BytesIO(data)
            setattr(owner, field.name, subcon._parse(inner, context, path))
            if inner.tell() != len(data):
                raise StreamError(f"the tagged field {field.name} is shorter than its size", path=path)
        if unknown:
            owner.unknown_tagged_fields = tuple(unknown)

    def _parse(self, stream: Any, context: Any, path: str) -> None:
        self.parse_onto(context["_owner"], stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> None:
        section = list(obj.unknown_tagged_fields)
        if not self.known.keys().isdisjoint([tag for tag, _ in section]):
            raise IntegerError("an unknown tagged field has the tag of a known one", path=path)
        for tag, (field, subcon) in self.known.items():
            value = getattr(obj, field.name)
            if value != field.make_default():
                inner = io.BytesIO()
                subcon._build(value, inner, context, path)
                section.append((tag, inner.getvalue()))
        section.sort(key=lambda entry: entry[0])
        UNSIGNED_VARINT._build(len(section), stream, context, path)
        for tag, data in section:
            UNSIGNED_VARINT._build(tag, stream, context, path)
            UNSIGNED_VARINT._build(len(data), stream, context, path)
            stream_write(stream, data, len(data), path)


class StructOfVersion(construct.Struct):
    """One version of a declared struct: the fields it has, in order, then the tagged fields where it is flexible."""

    def __init__(
        self,
        struct_class: type[Struct],
        version: int,
        members: list[tuple[Field, AnyConstruct]],
        absent: list[Field],
        tagged: TaggedFields | None,
    ) -> None:
        subcons = [field.name / subcon for field, subcon in members]
        super().__init__(*subcons, *([tagged] if tagged else []))
        self.struct_class = struct_class
        self.version = version
        self.members = members
        self.absent = absent
        self.tagged = tagged
        self.min_size = sum([cast("Any", subcon).min_size for _, subcon in members]) + (tagged is not None)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        made = self.struct_class()
        for field, subcon in self.members:
            setattr(made, field.name, subcon._parse(stream, context, f"{path} -> {field.name}"))
        if self.tagged:
            self.tagged.parse_onto(made, stream, context, path)
        return made

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for field in self.absent:
            if not field.ignorable and getattr(obj, field.name) != field.make_default():
                raise unsupported_field(self.struct_class, field.name, self.version)
        for field, subcon in self.members:
            subcon._build(getattr(obj, field.name), stream, context, f"{path} -> {field.name}")
        if self.tagged:
            self.tagged._build(obj, stream, context, path)
        elif obj.unknown_tagged_fields:
            raise unsupported_field(self.struct_class, "unknown_tagged_fields", self.version)
        return obj


def unsupported_field(struct_class: type[Struct], name: str, version: int) -> KafkaError:
    """The error of a field that is set although the version cannot carry it."""
    return KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, f"{struct_class.__name__}.{name} is set, but version {version} does not have it"
    )
