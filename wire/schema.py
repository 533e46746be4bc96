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

from barnabas.wire.constructor import make_constructor
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.fields import (
    LAST_VERSION,
    NO_VERSIONS,
    Field,
    StructBase,
    array,
    boolean,
    byte_string,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    parse_versions,
    records,
    string,
    uint16,
    uint32,
    uuid,
)
from barnabas.wire.types import Bytes, Records, Uuid, chunk_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from construct import Construct

    from barnabas.wire.codec import Codec
    from barnabas.wire.types import Chunk

__all__ = [
    "Bytes", "Field", "Message", "Records", "Struct", "Uuid", "array", "boolean", "byte_string", "float64", "int8",
    "int16", "int32", "int64", "message", "nested", "records", "string", "struct", "uint16", "uint32",
    "uuid",
]  # fmt: skip

T = TypeVar("T")
S = TypeVar("S", bound="Struct")
M = TypeVar("M", bound="Message")


class Struct(StructBase):
    """A part of a message: typed attributes, a keyword constructor, equality, a repr."""

    __slots__ = ()

    _values: ClassVar[Callable[[Any], Any] | None] = None

    def __init__(self, **values: Any) -> None:
        # The first construction of a class makes its real constructor: most of the 700 classes are never constructed.
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
