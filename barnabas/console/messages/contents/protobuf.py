"""Protobuf: messages of a schema from .proto text or a descriptor set, as plain values and back.

Fields have the names of the .proto file; fields without presence are there with their default, so that a filter finds
them. Integers of 64 bits are numbers, not text as in protobuf's JSON mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from barnabas.console.messages.contents.plain import plain_value
from barnabas.console.messages.contents.proto_files import parse_proto, types_of

MAX_DEPTH = 100
_WELL_KNOWN = ("google.protobuf.",)
_STANDARD_MODULES = (
    "any_pb2", "api_pb2", "duration_pb2", "empty_pb2", "field_mask_pb2", "source_context_pb2", "struct_pb2",
    "timestamp_pb2", "type_pb2", "wrappers_pb2", "descriptor_pb2",
)  # fmt: skip


class ProtobufSchema:
    """The message types of one schema. `main_type` is used if none is named."""

    def __init__(self, files: Sequence[descriptor_pb2.FileDescriptorProto]) -> None:
        """ValueError with a sentence if the files do not fit together or have no message. The last is the main one."""
        self._pool = DescriptorPool()
        standard = _standard_files()
        try:
            added: set[str] = set()
            for file in files:
                self._add(file, {known.name: known for known in files}, standard, added)
            self._main = self._pool.FindFileByName(files[-1].name)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"the files do not fit together: {error}") from None
        self.types = [name.removeprefix(".") for file in files for name, kind in types_of(file).items() if kind == 11]
        if not files[-1].message_type:
            raise ValueError(f"{files[-1].name} has no message")
        self.main_type = next(iter(self._main.message_types_by_name.values())).full_name

    def _add(
        self,
        file: descriptor_pb2.FileDescriptorProto,
        files: Mapping[str, descriptor_pb2.FileDescriptorProto],
        standard: Mapping[str, descriptor_pb2.FileDescriptorProto],
        added: set[str],
    ) -> None:
        """Add a file behind those that it imports."""
        if file.name in added:
            return
        added.add(file.name)
        for name in file.dependency:
            dependency = files.get(name) or standard.get(name)
            if dependency is None:
                raise ValueError(f"{file.name} imports {name!r}, which is not there")
            self._add(dependency, files, standard, added)
        self._pool.Add(file)

    @classmethod
    def from_text(cls, name: str, text: str, imports: Mapping[str, str] | None = None) -> ProtobufSchema:
        """From the text of a .proto file, and of those that it imports by these names, each behind its own imports."""
        types: dict[str, int] = {}
        for standard in _standard_files().values():
            types |= types_of(standard)
        files = []
        for file_name, file_text in [*(imports or {}).items(), (name, text)]:
            files.append(parse_proto(file_name, file_text, types))
            types |= types_of(files[-1])
        return cls(files)

    @classmethod
    def from_descriptor_set(cls, data: bytes) -> ProtobufSchema:
        """From what `protoc --include_imports --descriptor_set_out` writes."""
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(data).file
        except DecodeError:
            raise ValueError("not a descriptor set of protoc") from None
        if not files:
            raise ValueError("the descriptor set has no file")
        return cls(list(files))

    def message_type(self, name: str) -> Descriptor:
        """A message type by its full name; empty: the main one. ValueError if there is none."""
        try:
            return self._pool.FindMessageTypeByName(name or self.main_type)
        except KeyError:
            raise ValueError(f"the schema has no message {name!r}; there are {', '.join(self.types[:20])}") from None

    def type_at(self, indexes: Sequence[int]) -> str:
        """The full name of the message that a Schema Registry's framing has the indexes of. ValueError."""
        try:
            types = list(self._main.message_types_by_name.values())
            message = types[indexes[0]]
            for index in indexes[1:]:
                message = message.nested_types[index]
        except IndexError:
            raise ValueError(f"the schema has no message at {list(indexes)}") from None
        return str(message.full_name)

    def decode(self, data: bytes, type_name: str = "") -> Any:
        """The plain value of a message. ValueError with a sentence."""
        message = GetMessageClass(self.message_type(type_name))()
        try:
            message.ParseFromString(data)
        except DecodeError:
            raise ValueError(f"not a {type_name or self.main_type} message of Protobuf") from None
        return _plain_message(message, 0)

    def encode(self, content: Any, type_name: str = "") -> bytes:
        """The bytes of a plain value. ValueError with a sentence."""
        message = GetMessageClass(self.message_type(type_name))()
        try:
            json_format.ParseDict(content, message)
        except (json_format.ParseError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"not a {type_name or self.main_type} message: {error}") from None
        encoded: bytes = message.SerializeToString()
        return encoded


def _standard_files() -> dict[str, descriptor_pb2.FileDescriptorProto]:
    """The files that come with protobuf, such as google/protobuf/timestamp.proto."""
    from importlib import import_module

    files: dict[str, descriptor_pb2.FileDescriptorProto] = {}
    for module in _STANDARD_MODULES:
        file = descriptor_pb2.FileDescriptorProto()
        import_module(f"google.protobuf.{module}").DESCRIPTOR.CopyToProto(file)
        files[file.name] = file
    return files


def _plain_message(message: Message, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"messages in messages, more than {MAX_DEPTH} deep")
    descriptor = message.DESCRIPTOR
    if descriptor.full_name.startswith(_WELL_KNOWN):
        try:
            return json_format.MessageToDict(message)
        except (ValueError, TypeError, json_format.SerializeToJsonError):
            pass  # such as a Timestamp out of range, or an Any of an unknown type: its fields are shown
    content: dict[str, Any] = {}
    for field in descriptor.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        content[field.name] = _plain_field(field, getattr(message, field.name), depth)
    return content


def _plain_field(field: FieldDescriptor, value: Any, depth: int) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        item = field.message_type.fields_by_name["value"]
        return {str(plain_value(key)): _plain_item(item, value[key], depth) for key in value}
    if field.is_repeated:
        return [_plain_item(field, item, depth) for item in value]
    return _plain_item(field, value, depth)


def _plain_item(field: FieldDescriptor, value: Any, depth: int) -> Any:
    if field.message_type is not None:
        return _plain_message(value, depth + 1)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    return plain_value(value)


def read_indexes(data: bytes, at: int) -> tuple[list[int], int]:
    """The message indexes of a Schema Registry's framing at `at`, and where they end. ValueError if they are wrong."""
    from barnabas.wire.varint import record_varint

    try:
        count, at = record_varint(data, at)
        if count == 0:
            return [0], at  # the first message, in short
        indexes = []
        for _ in range(min(count >> 1, MAX_DEPTH + 1)):
            index, at = record_varint(data, at)
            indexes.append(index >> 1)
    except Exception as error:  # a varint of the wire package: IndexError or CorruptRecord
        raise ValueError("the framing's message indexes are cut") from error
    if not 0 < len(indexes) <= MAX_DEPTH:
        raise ValueError("the framing's message indexes are too many")
    return indexes, at
