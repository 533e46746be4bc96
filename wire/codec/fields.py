"""The fields of message declarations: the class Field, and one function for each of Kafka's types.

A field names its type, the versions that have it (`"3+"`, `"0-12"`), where it may be null, its tag, its default and
whether a version without it may drop it (`ignorable`). The functions return a `Field` and are annotated with the type
of its values, so that type checkers see typed attributes.

Modules that compile declarations import this one; it imports none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.wire.types import Records, TaggedField, Uuid

T = TypeVar("T")
S = TypeVar("S", bound="StructBase")

NO_VERSIONS = range(0)
LAST_VERSION = 32767


def parse_versions(text: str) -> range:
    """Kafka's range notation as a range: `"3+"`, `"0-12"`, `"4"`, `"none"`."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return range(int(text[:-1]), LAST_VERSION + 1)
    first, dash, last = text.partition("-")
    return range(int(first), int(last if dash else first) + 1)


class _Fresh:
    """Marks a mutable default (list or struct): each message gets a new one."""

    def __repr__(self) -> str:
        return "<fresh>"


FRESH: Any = _Fresh()


class Field:
    """One declared field: its type, its versions, its default."""

    __slots__ = ("compact", "default", "element", "entity", "ignorable", "kind", "name", "nullable", "tag", "versions")

    def __init__(
        self,
        kind: str,
        versions: str,
        nullable: str,
        tag: int,
        default: object,
        ignorable: bool,
        entity: str,
        element: Callable[..., Any] | None = None,
        compact: bool = True,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions = versions
        self.nullable = nullable
        self.tag = tag  # -1: not tagged
        self.default = default
        self.ignorable = ignorable
        self.entity = entity  # Kafka's entityType: topicName, groupId, brokerId ...
        self.compact = compact  # False: the length is not compact in flexible versions
        self.element = element  # of an array: the field function or the class of its elements; of a struct: its class

    def __repr__(self) -> str:
        return f"<Field {self.name}: {self.kind} {self.versions}>"

    @property
    def struct_class(self) -> type[StructBase] | None:
        """The class of a nested struct, or of an array's elements."""
        element = self.element
        return element if isinstance(element, type) else None

    @property
    def element_kind(self) -> str:
        """The kind of an array's elements."""
        element = self.element
        return "struct" if isinstance(element, type) else KIND_OF_FUNCTION[cast("Callable[..., Any]", element)]

    @property
    def has_fresh_default(self) -> bool:
        """Whether the default is mutable, so that each message needs a new one."""
        return self.default is FRESH

    def is_default(self, value: object) -> bool:
        """Whether a value equals Kafka's default, so that nothing is lost in a version without the field."""
        if self.kind == "array" and self.default is FRESH:
            return value is not None and not value
        return bool(value == self.make_default())

    def make_default(self) -> object:
        """Kafka's default value; a list or a struct is a new one."""
        if self.default is not FRESH:
            return self.default
        return [] if self.kind == "array" else cast("type[StructBase]", self.element)()


class StructBase:
    """The part of a declared struct that the compiler uses; `schema.Struct` adds constructor, equality and repr."""

    __slots__ = ("unknown_tagged_fields",)

    unknown_tagged_fields: tuple[TaggedField, ...]
    """Tagged fields that a peer sent and this declaration does not know, in ascending order of their tags."""

    declared: ClassVar[tuple[Field, ...]] = ()
    """The fields in wire order."""


def int8(versions: str, *, tag: int = -1, default: int = 0, ignorable: bool = False, entity: str = "") -> int:
    """A signed byte."""
    return cast("int", Field("int8", versions, "none", tag, default, ignorable, entity))


def int16(versions: str, *, tag: int = -1, default: int = 0, ignorable: bool = False, entity: str = "") -> int:
    """Two bytes, signed, big endian."""
    return cast("int", Field("int16", versions, "none", tag, default, ignorable, entity))


def uint16(versions: str, *, tag: int = -1, default: int = 0, ignorable: bool = False, entity: str = "") -> int:
    """Two bytes, unsigned, big endian."""
    return cast("int", Field("uint16", versions, "none", tag, default, ignorable, entity))


def int32(versions: str, *, tag: int = -1, default: int = 0, ignorable: bool = False, entity: str = "") -> int:
    """Four bytes, signed, big endian."""
    return cast("int", Field("int32", versions, "none", tag, default, ignorable, entity))


def uint32(versions: str, *, tag: int = -1, default: int = 0, ignorable: bool = False, entity: str = "") -> int:
    """Four bytes, unsigned, big endian."""
    return cast("int", Field("uint32", versions, "none", tag, default, ignorable, entity))


def int64(versions: str, *, tag: int = -1, default: int = 0, ignorable: bool = False, entity: str = "") -> int:
    """Eight bytes, signed, big endian."""
    return cast("int", Field("int64", versions, "none", tag, default, ignorable, entity))


def float64(versions: str, *, tag: int = -1, default: float = 0.0, ignorable: bool = False, entity: str = "") -> float:
    """Eight bytes, IEEE 754, big endian."""
    return cast("float", Field("float64", versions, "none", tag, default, ignorable, entity))


def boolean(versions: str, *, tag: int = -1, default: bool = False, ignorable: bool = False, entity: str = "") -> bool:
    """One byte; every value other than zero is true, as in Kafka."""
    return cast("bool", Field("boolean", versions, "none", tag, default, ignorable, entity))


def uuid(versions: str, *, tag: int = -1, default: Uuid = ZERO_UUID, ignorable: bool = False, entity: str = "") -> Uuid:
    """16 raw bytes."""
    return cast("Uuid", Field("uuid", versions, "none", tag, default, ignorable, entity))


def string(
    versions: str,
    *,
    nullable: str = "none",
    tag: int = -1,
    default: str | None = "",
    ignorable: bool = False,
    entity: str = "",
    flexible: str = "",
) -> str:
    """UTF-8 with a length: int16, or an unsigned varint of length + 1 in flexible versions.

    `flexible="none"` keeps the int16 in every version. The client id of a request header needs it: a broker reads it
    before it knows the version.
    """
    return cast("str", Field("string", versions, nullable, tag, default, ignorable, entity, compact=flexible != "none"))


def byte_string(
    versions: str,
    *,
    nullable: str = "none",
    tag: int = -1,
    default: bytes | None = b"",
    ignorable: bool = False,
    entity: str = "",
) -> bytes:
    """Bytes with a length: int32, or an unsigned varint of length + 1 in flexible versions. Kafka's `bytes`."""
    return cast("bytes", Field("bytes", versions, nullable, tag, default, ignorable, entity))


def records(versions: str, *, nullable: str = "none", ignorable: bool = False) -> Records:
    """Record batches, encoded as `bytes` and never copied. The default is null if the field is nullable."""
    default = b"" if nullable == "none" else None
    return cast("Records", Field("records", versions, nullable, -1, default, ignorable, ""))


def array(
    element: Callable[..., T],
    versions: str,
    *,
    nullable: str = "none",
    tag: int = -1,
    default: list[T] | None = FRESH,
    ignorable: bool = False,
    entity: str = "",
) -> list[T]:
    """A count and that many elements. `element` is a Struct, or the field function of a primitive type."""
    return cast("list[T]", Field("array", versions, nullable, tag, default, ignorable, entity, element))


def nested(
    element: type[S],
    versions: str,
    *,
    nullable: str = "none",
    tag: int = -1,
    default: S | None = FRESH,
    ignorable: bool = False,
) -> S:
    """A nested struct; a nullable one has a byte before it (KIP-893)."""
    return cast("S", Field("struct", versions, nullable, tag, default, ignorable, "", element))


KIND_OF_FUNCTION: dict[Callable[..., Any], str] = {
    int8: "int8",
    int16: "int16",
    uint16: "uint16",
    int32: "int32",
    uint32: "uint32",
    int64: "int64",
    float64: "float64",
    boolean: "boolean",
    uuid: "uuid",
    string: "string",
    byte_string: "bytes",
    records: "records",
}
