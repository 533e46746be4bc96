"""Base classes and decorators of message declarations: one class, typed attributes, Kafka's notation for versions.

    @message("request", key=0, versions="3-13", flexible="9+")
    class ProduceRequest(Message):
        acks: int = int16("0+")

The functions for fields are in `codec/fields.py` and can be imported from here. A declared class has slots, a keyword
constructor with every field optional, equality and a repr. For each version it makes a construct (`at`) and a compiled
codec (`codec`) on first use; importing a declaration imports neither construct nor the compiler.

Invariants: a class is declared once for all versions; attribute names are Kafka's JSON names in snake_case; defaults
are Kafka's.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

from barnabas.wire.codec.fields import (
    FRESH,
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
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.types import Bytes, Records, Uuid, chunk_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from construct import Construct

    from barnabas.wire.codec.message_codec import Codec
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
        # The first construction of a class generates its constructor: most of the 700 classes are never constructed.
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
    """The repr of a value for a log line: long bytes are replaced by their size."""
    if isinstance(value, bytes | bytearray | memoryview):
        return repr(bytes(value)) if len(value) <= 32 else f"<{len(value)} bytes>"
    return repr(value)


class Message(Struct):
    """A complete message: the contents of a frame, of a record's key or value, or of a metadata record."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    """request, response, header, data, key, value (of a coordinator's records) or record (cluster metadata)."""
    api_key: ClassVar[int] = -1
    """Kafka's apiKey: the key of the API or of the record type; -1 for messages without one."""
    versions: ClassVar[range] = NO_VERSIONS
    """The valid versions; empty for APIs that Kafka 4 removed."""
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
        """The construct of one version. KafkaError(UNSUPPORTED_VERSION) for an unknown version."""
        construct = cls._constructs.get(version)
        if construct is None:
            from barnabas.wire.codec.structs import construct_of

            cls._check_version(version)
            construct = cls._constructs[version] = construct_of(cls, version, version >= cls.flexible_since)
        return construct

    @classmethod
    def codec(cls: type[M], version: int) -> Codec[M]:
        """The compiled codec of one version. KafkaError(UNSUPPORTED_VERSION) for an unknown version."""
        codec = cls._codecs.get(version)
        if codec is None:
            from barnabas.wire.codec.message_codec import Codec

            codec = cls._codecs[version] = Codec(cls, version, cls.at(version))
        return codec

    @classmethod
    def decode(cls: type[M], data: bytes | bytearray | memoryview, version: int) -> M:
        """Decode `data`. ProtocolError when it is not exactly one message."""
        decoded, pos = cls.codec(version).parse(data)
        if pos != len(data):
            raise ProtocolError(f"{cls.__name__} v{version}: {len(data) - pos} bytes after the end of the message")
        return decoded

    def encode_chunks(self, version: int) -> list[Chunk]:
        """The message in chunks: records are not copied. Errors as `encode`."""
        return self.codec(version).build(self)

    def encode(self, version: int) -> bytes:
        """The message as bytes.

        KafkaError(UNSUPPORTED_VERSION) for an unknown version, or one without a field that is set and not ignorable;
        ValueError for a value that its field cannot hold.
        """
        chunks = self.codec(version).build(self)
        if len(chunks) == 1 and type(chunks[0]) is bytes:
            return chunks[0]
        return b"".join(map(chunk_bytes, chunks))

    @classmethod
    def _check_version(cls, version: int) -> None:
        if version not in cls.versions:
            known = f"valid versions are {cls.min_version}-{cls.max_version}" if cls.versions else "it has no version"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__name__} does not have version {version}: {known}")


def _with_slots(cls: type[T]) -> type[T]:
    """A copy of the class with a slot for each declared field."""
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
    """Class decorator: turns a class of field declarations into a struct that messages can contain."""
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
    """Class decorator: turns a class of field declarations into a message; arguments as in Kafka's declarations."""

    def declare(cls: type[M]) -> type[M]:
        slotted = _with_slots(cls)
        slotted.kind = kind
        slotted.api_key = key
        slotted.versions = valid = parse_versions(versions)
        slotted.min_version = valid.start
        slotted.max_version = valid.stop - 1
        if flexible != "none":
            slotted.flexible_since = parse_versions(flexible).start
        slotted.api_listeners = listeners
        slotted.latest_version_unstable = latest_unstable
        slotted._codecs = {}
        slotted._constructs = {}
        return slotted

    return declare


def make_constructor(cls: type[StructBase]) -> Callable[..., None]:
    """`__init__(self, *, field=default, ...)` of a class, as straight-line code that is generated on its first use.

    The broker constructs several objects for every response; a generic loop over the fields takes five times as long.
    """
    scope: dict[str, Any] = {"FRESH": FRESH}
    parameters = []
    body = ["self.unknown_tagged_fields = ()"]
    for index, field in enumerate(cls.declared):
        name = field.name
        if not field.has_fresh_default:
            scope[f"default_{index}"] = field.default
            parameters.append(f"{name}=default_{index}")
            body.append(f"self.{name} = {name}")
            continue
        fresh = "[]"
        if field.kind == "struct":
            scope[f"struct_{index}"] = field.struct_class
            fresh = f"struct_{index}()"
        parameters.append(f"{name}=FRESH")
        body.append(f"self.{name} = {fresh} if {name} is FRESH else {name}")
    head = f"def __init__(self{', *, ' if parameters else ''}{', '.join(parameters)}):\n    "
    exec(compile(head + "\n    ".join(body), f"<constructor of {cls.__name__}>", "exec"), scope)  # noqa: S102
    constructor: Callable[..., None] = scope["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor
