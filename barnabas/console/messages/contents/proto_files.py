"""A .proto file's text as protobuf's `FileDescriptorProto`: proto-schema-parser parses, this names types and fields.

Names of types are resolved as protoc does: from the innermost message outwards, then in the imported files. Options and
services have no effect on decoding and are left out, but for `packed`, which the wire format tells itself. Extensions
are left out: their fields are unknown fields of the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import descriptor_pb2

MAX_TEXT = 256 * 1024
"""The longest file, in characters: the parser is in Python and takes about a second for so many."""

_SCALARS = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32",
        "sfixed32", "sfixed64", "sint32", "sint64",
    )
}  # fmt: skip
_LABELS = {
    "REQUIRED": descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED,
    "REPEATED": descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
    "OPTIONAL": descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
}
MESSAGE, ENUM = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, descriptor_pb2.FieldDescriptorProto.TYPE_ENUM


def parse_proto(name: str, text: str, imported: Mapping[str, int] | None = None) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of a .proto file. ValueError with a sentence.

    `imported` has the types of imported files: full name with a leading dot, and TYPE_MESSAGE or TYPE_ENUM.
    """
    from proto_schema_parser import ast
    from proto_schema_parser.parser import Parser

    if len(text) > MAX_TEXT:
        raise ValueError(f"{name}: a .proto file of {len(text)} characters is longer than {MAX_TEXT}")
    try:
        parsed = Parser(setup_lexer=_raise_errors, setup_parser=_raise_errors).parse(text)
    except Exception as error:  # the parser's own exceptions differ between releases
        raise ValueError(f"{name}: not a .proto file: {str(error).splitlines()[0]}") from None
    file = descriptor_pb2.FileDescriptorProto(name=name, syntax=parsed.syntax or "proto2")
    if parsed.edition is not None:
        raise ValueError(f"{name}: editions are not supported; syntax proto2 and proto3 are")
    for element in parsed.file_elements:
        if isinstance(element, ast.Package):
            file.package = element.name
        elif isinstance(element, ast.Import):
            file.dependency.append(element.name)
        elif isinstance(element, ast.Message):
            _add_message(file.message_type.add(), element, is_proto3=file.syntax == "proto3")
        elif isinstance(element, ast.Enum):
            _add_enum(file.enum_type.add(), element)
    types = types_of(file) | dict(imported or {})
    prefix = f".{file.package}" if file.package else ""
    for message in file.message_type:
        _resolve(message, f"{prefix}.{message.name}", types, name)
    return file


def _raise_errors(recognizer: Any) -> None:
    """The first mistake ends the parsing; by default it is printed and guessed around."""
    from antlr4.error.ErrorListener import ErrorListener

    class Raising(ErrorListener):  # type: ignore[misc]
        def syntaxError(self, _recognizer: Any, _symbol: Any, line: int, column: int, text: str, _error: Any) -> None:  # noqa: N802
            raise ValueError(f"line {line}, column {column + 1}: {text.partition(' expecting ')[0]}")

    recognizer.removeErrorListeners()
    recognizer.addErrorListener(Raising())


def types_of(file: descriptor_pb2.FileDescriptorProto) -> dict[str, int]:
    """The full names of a file's messages and enums, each with a leading dot."""
    types: dict[str, int] = {}

    def add(prefix: str, messages: Iterable[Any], enums: Iterable[Any]) -> None:
        for enum in enums:
            types[f"{prefix}.{enum.name}"] = ENUM
        for message in messages:
            types[f"{prefix}.{message.name}"] = MESSAGE
            add(f"{prefix}.{message.name}", message.nested_type, message.enum_type)

    add(f".{file.package}" if file.package else "", file.message_type, file.enum_type)
    return types


# --- from the syntax tree to descriptors; types still have the names that the file uses


def _add_message(message: descriptor_pb2.DescriptorProto, parsed: Any, *, is_proto3: bool) -> None:
    from proto_schema_parser import ast

    message.name = parsed.name
    for element in parsed.elements:
        if isinstance(element, ast.Field):
            _add_field(message, element, is_proto3=is_proto3)
        elif isinstance(element, ast.MapField):
            _add_map(message, element)
        elif isinstance(element, ast.Group):
            _add_group(message, element, is_proto3=is_proto3)
        elif isinstance(element, ast.OneOf):
            _add_oneof(message, element)
        elif isinstance(element, ast.Message):
            _add_message(message.nested_type.add(), element, is_proto3=is_proto3)
        elif isinstance(element, ast.Enum):
            _add_enum(message.enum_type.add(), element)
    _add_synthetic_oneofs(message)


def _add_oneof(message: descriptor_pb2.DescriptorProto, parsed: Any) -> None:
    from proto_schema_parser import ast

    index = len(message.oneof_decl)
    message.oneof_decl.add(name=parsed.name)
    for member in parsed.elements:
        if isinstance(member, ast.Field):
            _add_field(message, member, is_proto3=False).oneof_index = index
        elif isinstance(member, ast.Group):
            _add_group(message, member, is_proto3=False).oneof_index = index


def _add_field(message: descriptor_pb2.DescriptorProto, parsed: Any, *, is_proto3: bool) -> Any:
    cardinality = parsed.cardinality.value if parsed.cardinality is not None else "OPTIONAL"
    field = message.field.add(name=parsed.name, number=parsed.number, label=_LABELS[cardinality])
    if parsed.type in _SCALARS:
        field.type = _SCALARS[parsed.type]
    else:
        field.type_name = parsed.type
    if is_proto3 and parsed.cardinality is not None and cardinality == "OPTIONAL":
        field.proto3_optional = True
    return field


def _add_synthetic_oneofs(message: descriptor_pb2.DescriptorProto) -> None:
    """proto3's `optional` is a oneof of one field, behind all others."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _add_map(message: descriptor_pb2.DescriptorProto, parsed: Any) -> None:
    """A map is a repeated message of key and value."""
    entry = message.nested_type.add(name="".join(part.capitalize() for part in parsed.name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, (name, type_) in enumerate((("key", parsed.key_type), ("value", parsed.value_type)), 1):
        field = entry.field.add(name=name, number=number, label=_LABELS["OPTIONAL"])
        if type_ in _SCALARS:
            field.type = _SCALARS[type_]
        else:
            field.type_name = type_
    message.field.add(name=parsed.name, number=parsed.number, label=_LABELS["REPEATED"], type_name=entry.name)


def _add_group(message: descriptor_pb2.DescriptorProto, parsed: Any, *, is_proto3: bool) -> Any:
    _add_message(message.nested_type.add(), parsed, is_proto3=is_proto3)
    cardinality = parsed.cardinality.value if parsed.cardinality is not None else "OPTIONAL"
    return message.field.add(
        name=parsed.name.lower(),
        number=parsed.number,
        label=_LABELS[cardinality],
        type=descriptor_pb2.FieldDescriptorProto.TYPE_GROUP,
        type_name=parsed.name,
    )


def _add_enum(enum: descriptor_pb2.EnumDescriptorProto, parsed: Any) -> None:
    from proto_schema_parser import ast

    enum.name = parsed.name
    for element in parsed.elements:
        if isinstance(element, ast.EnumValue):
            enum.value.add(name=element.name, number=element.number)
        elif isinstance(element, ast.Option) and element.name == "allow_alias":
            enum.options.allow_alias = True


# --- names of types


def _resolve(message: descriptor_pb2.DescriptorProto, scope: str, types: Mapping[str, int], file: str) -> None:
    """Replace the names of types by full names, in a message and those in it."""
    for field in message.field:
        if field.type_name:
            full_name = _full_name(field.type_name, scope, types)
            if full_name is None:
                raise ValueError(f"{file}: {scope[1:]}.{field.name} has an unknown type {field.type_name}")
            field.type_name = full_name
            if not field.type:
                field.type = types[full_name]
    for nested in message.nested_type:
        _resolve(nested, f"{scope}.{nested.name}", types, file)


def _full_name(name: str, scope: str, types: Mapping[str, int]) -> str | None:
    if name.startswith("."):
        return name if name in types else None
    while True:
        candidate = f"{scope}.{name}"
        if candidate in types:
            return candidate
        if not scope:
            return None
        scope = scope.rpartition(".")[0]
