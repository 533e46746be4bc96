"""Structs and tagged fields as constructs, and the construct of one version of a declared struct.

A struct parses to an object of its declared class and builds from one. A field that the version does not have is set
to Kafka's default by parsing; building requires that it has its default or is ignorable. Tagged fields with their
default are not written; unknown tagged fields are kept and written again (KIP-482).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import construct
from construct import IntegerError, StreamError
from construct.core import stream_read, stream_write

from barnabas.wire.codec import primitives
from barnabas.wire.codec.composites import Array, NullableStruct
from barnabas.wire.codec.fields import FRESH, parse_versions
from barnabas.wire.codec.primitives import (
    COMPACT_LENGTH,
    LONG_LENGTH,
    SHORT_LENGTH,
    UNSIGNED_VARINT,
    AnyConstruct,
    ByteString,
    RecordBytes,
    Sized,
    String,
    reading,
    writing,
)
from barnabas.wire.codec.runtime import unsupported_field

if TYPE_CHECKING:
    from barnabas.wire.codec.emit import BuildGen, ParseGen, StatementGen
    from barnabas.wire.codec.fields import Field, StructBase


class TaggedFields(AnyConstruct):
    """The section at the end of a flexible struct: a count, then tag, size and bytes of each field, tags ascending.

    It is an unnamed member of its struct: it parses to attributes of the struct's object and builds from them.
    """

    min_size = 1

    def __init__(self, known: dict[int, tuple[Field, Any]]) -> None:
        super().__init__()
        self.known = known
        self.flagbuildnone = True

    def parse_onto(self, owner: StructBase, stream: Any, context: Any, path: str) -> None:
        """Parses the section into attributes of `owner`."""
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
                raise StreamError(f"the tagged field {tag} does not match its size", path=path)
        if unknown:
            owner.unknown_tagged_fields = tuple(unknown)

    def build_from(self, owner: StructBase, stream: Any, context: Any, path: str) -> None:
        """Builds the section from attributes of `owner`."""
        section = list(owner.unknown_tagged_fields)
        if not self.known.keys().isdisjoint([tag for tag, _ in section]):
            raise IntegerError("an unknown tagged field with the tag of a known one", path=path)
        for tag, (field, subcon) in self.known.items():
            value = getattr(owner, field.name)
            if not field.is_default(value):
                inner = io.BytesIO()
                subcon._build(value, inner, context, path)
                section.append((tag, inner.getvalue()))
        section.sort(key=lambda entry: entry[0])
        UNSIGNED_VARINT._build(len(section), stream, context, path)
        for tag, data in section:
            UNSIGNED_VARINT._build(tag, stream, context, path)
            UNSIGNED_VARINT._build(len(data), stream, context, path)
            stream_write(stream, data, len(data), path)

    def emit_parse_onto(self, reader: ParseGen, owner: str) -> None:
        """Emits code that reads the section; a section with fields is read by a function of its own."""
        for field, _ in self.known.values():
            _emit_default(reader, field, owner)
        reader.line(f"{owner}.unknown_tagged_fields = ()")
        count = reader.name("n")
        reader.cell("B", count)
        reader.flush()
        with reader.block(f"if {count}:"):
            budget = ", budget" if reader.counts else ""
            if self.known:
                reader.line(f"pos{budget} = {self._emit_reader(reader)}({owner}, buf, pos - 1, end{budget})")
            else:
                reader.line(f"{owner}.unknown_tagged_fields, pos = unknown_tags(buf, pos - 1, end{budget})")
                if budget:
                    reader.line(f"budget -= len({owner}.unknown_tagged_fields)")

    def _emit_reader(self, reader: ParseGen) -> str:
        name = reader.name("read_tags_")
        budget = ", budget" if reader.counts else ""
        with reader.function(f"{name}(owner, buf, pos, end{budget})"):
            reader.line("count, pos = unsigned_varint(buf, pos)")
            reader.take("count", "'tagged fields'")
            reader.line("unknown = []")
            with reader.block("for _ in range(count):"):
                reader.line("tag, pos = unsigned_varint(buf, pos)")
                reader.line("size, pos = unsigned_varint(buf, pos)")
                reader.line("field_end = pos + size")
                with reader.block("if field_end > end:"):
                    reader.line("truncated()")
                word = "if"
                for tag, (field, subcon) in self.known.items():
                    with reader.block(f"{word} tag == {tag}:"):
                        reader.read(subcon, f"owner.{field.name}")
                        reader.flush()
                    word = "elif"
                with reader.block("else:"):
                    reader.line("unknown.append((tag, bytes(buf[pos:field_end])))")
                    reader.line("pos = field_end")
                with reader.block("if pos != field_end:"):
                    reader.line("wrong_tag_size(tag)")
            with reader.block("if unknown:"):
                reader.line("owner.unknown_tagged_fields = tuple(unknown)")
            reader.line(f"return pos{budget}")
        return name

    def emit_build_from(self, writer: BuildGen, owner: str) -> None:
        """Emits code that writes the section: a zero byte when it has no fields."""
        conditions = [_differs(writer, field, f"{owner}.{field.name}") for field, _ in self.known.values()]
        conditions.append(f"{owner}.unknown_tagged_fields")
        with writer.block(f"if {' or '.join(conditions)}:"):
            writer.flush_keeping()
            if self.known:
                writer.line(f"w({self._emit_writer(writer)}({owner}))")
            else:
                writer.line(f"w(tag_section((), {owner}.unknown_tagged_fields, {writer.bind(frozenset(), 'none')}))")
        with writer.block("else:"):
            writer.cell("B", "0")
            writer.flush()

    def _emit_writer(self, writer: BuildGen) -> str:
        name = writer.name("write_tags_")
        taken = writer.bind(frozenset(self.known), "taken")
        with writer.function(f"{name}(owner)"):
            writer.line("known = []")
            for tag, (field, subcon) in self.known.items():
                with writer.block(f"if {_differs(writer, field, f'owner.{field.name}')}:"):
                    writer.line("out = []")
                    writer.line("w = out.append")
                    writer.write(subcon, f"owner.{field.name}")
                    writer.flush()
                    writer.line(f"known.append(({tag}, b''.join(out)))")
            writer.line(f"return tag_section(known, owner.unknown_tagged_fields, {taken})")
        return name


class StructOfVersion(construct.Struct):
    """One version of a declared struct: the fields it has, in order, then the tagged fields where it is flexible."""

    def __init__(
        self,
        struct_class: type[StructBase],
        version: int,
        members: list[tuple[Field, Any]],
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
        self.min_size = sum([subcon.min_size for _, subcon in members]) + (tagged is not None)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        struct = self.struct_class()
        for field, subcon in self.members:
            setattr(struct, field.name, subcon._parse(stream, context, f"{path} -> {field.name}"))
        if self.tagged:
            self.tagged.parse_onto(struct, stream, context, path)
        return struct

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for field in self.absent:
            if not field.ignorable and not field.is_default(getattr(obj, field.name)):
                unsupported_field(self.struct_class.__name__, field.name, self.version)
        for field, subcon in self.members:
            subcon._build(getattr(obj, field.name), stream, context, f"{path} -> {field.name}")
        if self.tagged:
            self.tagged.build_from(obj, stream, context, path)
        elif obj.unknown_tagged_fields:
            unsupported_field(self.struct_class.__name__, "unknown_tagged_fields", self.version)
        return obj

    def _emitparse(self, code: Any) -> str:
        reader = reading(code)
        owner = target = reader.target
        if not target.isidentifier():
            owner = reader.name("m")
            target = f"{target} = {owner}"
        reader.line(f"{target} = new({reader.bind(self.struct_class, 'class_')})")
        for field in self.absent:
            _emit_default(reader, field, owner)
        for field, subcon in self.members:
            reader.read(subcon, f"{owner}.{field.name}")
        if self.tagged:
            self.tagged.emit_parse_onto(reader, owner)
        else:
            reader.line(f"{owner}.unknown_tagged_fields = ()")
        return owner

    def _emitbuild(self, code: Any) -> str:
        writer = writing(code)
        owner = source = writer.source
        if not source.isidentifier():
            owner = writer.name("m")
            writer.line(f"{owner} = {source}")
        for field in self.absent:
            if not field.ignorable:
                self._emit_check(writer, _differs(writer, field, f"{owner}.{field.name}"), field.name)
        for field, subcon in self.members:
            writer.write(subcon, f"{owner}.{field.name}")
        if self.tagged:
            self.tagged.emit_build_from(writer, owner)
        else:
            self._emit_check(writer, f"{owner}.unknown_tagged_fields", "unknown_tagged_fields")
        return owner

    def _emit_check(self, writer: BuildGen, condition: str, name: str) -> None:
        with writer.block(f"if {condition}:"):
            writer.line(f"unsupported_field({self.struct_class.__name__!r}, {name!r}, {self.version})")


def _emit_default(code: StatementGen, field: Field, owner: str) -> None:
    """Emits the assignment of a field's default; a struct is created without calling its constructor."""
    target = f"{owner}.{field.name}"
    if field.default is not FRESH:
        code.line(f"{target} = {code.literal(field.default)}")
    elif field.struct_class is None or field.kind == "array":
        code.line(f"{target} = []")
    else:
        local = code.name("m")
        code.line(f"{target} = {local} = new({code.bind(field.struct_class, 'class_')})")
        for inner in field.struct_class.declared:
            _emit_default(code, inner, local)
        code.line(f"{local}.unknown_tagged_fields = ()")


def _differs(code: StatementGen, field: Field, source: str) -> str:
    """An expression that is true when the field does not have its default."""
    if field.kind == "array" and field.default is FRESH:
        return f"{source} is None or {source}" if field.nullable != "none" else source
    if field.default is None:
        return f"{source} is not None"
    if field.default is not FRESH:
        return f"{source} != {code.literal(field.default)}"
    assert field.struct_class is not None
    local = code.name("m")
    parts = [_differs(code, inner, f"{local}.{inner.name}") for inner in field.struct_class.declared]
    parts.append(f"{local}.unknown_tagged_fields")
    if field.nullable != "none":
        return " or ".join([f"({local} := {source}) is None", *parts])
    first = parts[0].replace(f"{local}.", f"({local} := {source}).", 1)
    return " or ".join([first, *parts[1:]])


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
