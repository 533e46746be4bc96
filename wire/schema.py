"""How a message is declared: one class, typed attributes, Kafka's own notation for versions.

    @message("request", key=0, versions="3-13", flexible="9+")
    class ProduceRequest(Message):
        acks: int = int16("0+")

A field says its Kafka type, the versions that have it (`"3+"`, `"0-12"`), where it may be null, its tag, its default
and whether a version without it may drop it (`ignorable`). From the declaration come an ordinary construct for each
version (`at`) and a compiled codec (`codec`), both on first use; importing a declaration imports neither construct nor
the compiler. Classes have slots, a keyword constructor with every field optional, equality and a repr.

Invariants: a class is declared once for all versions; attribute names are Kafka's JSON names in snake_case; a default
is Kafka's default; `unknown_tagged_fields` holds the tagged fields a peer sent that this declaration does not know.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.types import ZERO_UUID, Bytes, Records, TaggedField, Uuid, chunk_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from construct import Construct

    from barnabas.wire.codec import Codec
    from barnabas.wire.types import Chunk

__all__ = [
    "Bytes", "Field", "Message", "Records", "Struct", "Uuid", "array", "boolean", "byte_string", "float64", "int8",
    "int16", "int32", "int64", "message", "nested", "parse_versions", "records", "string", "struct", "uint16", "uint32",
    "uuid",
]  # fmt: skip

T = TypeVar("T")
S = TypeVar("S", bound="Struct")
M = TypeVar("M", bound="Message")

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


class Field:
    """One declared field: what it is, and in which versions."""

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
        self.entity = entity  # what the value names, Kafka's entityType: topicName, groupId, brokerId ...
        self.compact = compact  # False: the old length form even in flexible versions
        self.element = element  # of an array: the field function or the Struct of its elements; of a struct: its class

    def __repr__(self) -> str:
        return f"<Field {self.name}: {self.kind} {self.versions}>"

    @property
    def struct_class(self) -> type[Struct] | None:
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
        """True where the default is mutable, so that each message needs its own."""
        return self.default is FRESH

    def is_default(self, value: object) -> bool:
        """Whether a value is Kafka's default, so that a version without the field loses nothing."""
        if self.kind == "array" and self.default is FRESH:
            return value is not None and not value
        return bool(value == self.make_default())

    def make_default(self) -> object:
        """Kafka's default value; a list or a struct is a fresh one."""
        if self.default is not FRESH:
            return self.default
        return [] if self.kind == "array" else cast("type[Struct]", self.element)()


class _Fresh:
    """Marks a default that is made anew for each message."""

    def __repr__(self) -> str:
        return "<fresh>"


FRESH: Any = _Fresh()


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
    """One byte; whatever is not zero is true, as in Kafka."""
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

    `flexible="none"` keeps the int16 in every version: the client id of a request header, which a broker must be able
    to read before it knows the version.
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
    """Record batches, framed as `bytes` and never copied. The default is null where that is allowed."""
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
    """A count and that many elements: of a Struct, or of a primitive, given by its field function."""
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
    """A struct in place; a nullable one has a byte before it (KIP-893)."""
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


class Struct:
    """A part of a message: typed attributes, a keyword constructor, equality, a repr."""

    __slots__ = ("unknown_tagged_fields",)

    unknown_tagged_fields: tuple[TaggedField, ...]
    """Tagged fields that a peer sent and this declaration does not know, in the order of their tags."""

    declared: ClassVar[tuple[Field, ...]] = ()
    """The fields in the order of the wire."""

    _values: ClassVar[Callable[[Any], Any] | None] = None

    def __init__(self, **values: Any) -> None:
        # The first construction of a class makes its real constructor: most of the 700 classes are never constructed.
        from barnabas.wire.constructor import make_constructor

        cls = type(self)
        cls.__init__ = make_constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        cls = type(self)
        if type(other) is not cls:
            return NotImplemented
        values = cls._values
        if values is None:
            values = cls._values = attrgetter("unknown_tagged_fields", *[field.name for field in cls.declared])
        return bool(values(self) == values(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [f"{field.name}={_brief(getattr(self, field.name))}" for field in self.declared]
        if self.unknown_tagged_fields:
            parts.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _brief(value: object) -> str:
    """Long bytes are told by their size: a repr is for a log line."""
    if isinstance(value, bytes | bytearray | memoryview):
        return repr(bytes(value)) if len(value) <= 32 else f"<{len(value)} bytes>"
    return repr(value)


class Message(Struct):
    """A whole message: what a frame, a record or a log entry holds."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    """request, response, header, data, key, value (of a coordinator's records) or record (cluster metadata)."""
    api_key: ClassVar[int] = -1
    """Kafka's apiKey: of the API, or of the record type; -1 where there is none."""
    versions: ClassVar[range] = NO_VERSIONS
    """The valid versions; empty for the APIs that Kafka 4 has no version of."""
    min_version: ClassVar[int] = 0
    max_version: ClassVar[int] = -1
    flexible_since: ClassVar[int] = LAST_VERSION + 1
    """The first version with compact lengths and tagged fields."""
    api_listeners: ClassVar[tuple[str, ...]] = ()
    latest_version_unstable: ClassVar[bool] = False

    _codecs: ClassVar[dict[int, Codec[Any]]] = {}
    _constructs: ClassVar[dict[int, Construct[Any, Any]]] = {}

    @classmethod
    def at(cls, version: int) -> Construct[Any, Any]:
        """The ordinary construct of one version. KafkaError(UNSUPPORTED_VERSION) when there is no such version."""
        found = cls._constructs.get(version)
        if found is None:
            from barnabas.wire.versioned import construct_of

            cls._check_version(version)
            found = cls._constructs[version] = construct_of(cls, version, version >= cls.flexible_since)
        return found

    @classmethod
    def codec(cls: type[M], version: int) -> Codec[M]:
        """The compiled codec of one version. KafkaError(UNSUPPORTED_VERSION) when there is no such version."""
        found = cls._codecs.get(version)
        if found is None:
            from barnabas.wire.codec import Codec

            found = cls._codecs[version] = Codec(cls, version, cls.at(version))
        return found

    @classmethod
    def decode(cls: type[M], data: bytes | bytearray | memoryview, version: int) -> M:
        """A message from all the bytes of `data`. ProtocolError when they are not exactly one message."""
        decoded, pos = cls.codec(version).parse(data)
        if pos != len(data):
            raise ProtocolError(f"{cls.__name__} v{version}: {len(data) - pos} bytes left over after the message")
        return decoded

    def encode_chunks(self, version: int) -> list[Chunk]:
        """The message in pieces: records are not copied. Errors as `encode`."""
        return self.codec(version).build(self)

    def encode(self, version: int) -> bytes:
        """The message as bytes.

        KafkaError(UNSUPPORTED_VERSION) when the version does not exist, or lacks a field that is set and may not be
        dropped; ValueError when a value does not fit its field.
        """
        chunks = self.codec(version).build(self)
        if len(chunks) == 1 and type(chunks[0]) is bytes:
            return chunks[0]
        return b"".join(map(chunk_bytes, chunks))

    @classmethod
    def _check_version(cls, version: int) -> None:
        if version not in cls.versions:
            known = f"versions are {cls.min_version}-{cls.max_version}" if cls.versions else "it has no version"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__name__} does not have version {version}: {known}")


def _with_slots(cls: type[T]) -> type[T]:
    """The class again, with a slot for each declared field."""
    body = dict(cls.__dict__)
    declared = []
    for name, value in cls.__dict__.items():
        if type(value) is Field:
            value.name = name
            declared.append(value)
            del body[name]
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    body["__slots__"] = tuple([field.name for field in declared])
    body["declared"] = tuple(declared)
    return cast("type[T]", type(cls.__name__, cls.__bases__, body))


@dataclass_transform(kw_only_default=True)
def struct(cls: type[S]) -> type[S]:
    """Makes a class of field declarations a part of messages."""
    return _with_slots(cls)


@dataclass_transform(kw_only_default=True)
def message(
    kind: str,
    *,
    versions: str,
    key: int = -1,
    flexible: str = "none",
    listeners: tuple[str, ...] = (),
    latest_unstable: bool = False,
) -> Callable[[type[M]], type[M]]:
    """Makes a class of field declarations a message; the arguments are the head of Kafka's own declaration."""

    def declare(cls: type[M]) -> type[M]:
        made = _with_slots(cls)
        made.kind = kind
        made.api_key = key
        made.versions = valid = parse_versions(versions)
        made.min_version = valid.start
        made.max_version = valid.stop - 1
        if flexible != "none":
            made.flexible_since = parse_versions(flexible).start
        made.api_listeners = listeners
        made.latest_version_unstable = latest_unstable
        made._codecs = {}
        made._constructs = {}
        return made

    return declare
