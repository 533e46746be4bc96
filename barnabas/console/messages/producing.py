"""Records that a user writes: to bytes, to a partition; and old ones as text, to be edited and produced again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import randrange

from barnabas.client.accumulator import Batch
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.producer import Producer
from barnabas.console.messages.contents.formats import GUESS, Content, Decoder, encode
from barnabas.console.messages.contents.plain import is_printable
from barnabas.console.messages.contents.schemas import Schemas
from barnabas.console.messages.found_records import FoundRecord
from barnabas.wire.batches.records import Header
from barnabas.wire.clients.partitioners import Murmur2

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MOST_COPIES = 10_000
WRITABLE = ("null", "text", "json", "messagepack", "avro", "protobuf", "integer", "hex", "base64")


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """A record to produce. `partition` None: by the key, or any."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]
    partition: int | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class EditableText:
    """A key or value as the text of a field, and the format that makes the same bytes of it."""

    text: str
    format: str


def written_bytes(name: str, format_: str, text: str, schemas: Schemas) -> bytes | None:
    """The bytes of a field. ValueError with a sentence that begins with its name."""
    try:
        return encode(format_, text.replace("\r\n", "\n"), schemas)  # forms are sent with the line ends of DOS
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def written_headers(text: str) -> list[Header]:
    """Headers, one a line: `name: value`; `name` alone is null, `name: 0x00ff` are bytes. ValueError."""
    headers: list[Header] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not name.strip():
            raise ValueError(f"headers: a line is `name: value`, not {line!r}")
        if not colon:
            headers.append((name.strip(), None))
            continue
        value = value.removeprefix(" ")
        if value.startswith("0x"):
            try:
                headers.append((name.strip(), bytes.fromhex(value[2:])))
            except ValueError:
                raise ValueError(f"headers: {value!r} is not hexadecimal") from None
        else:
            headers.append((name.strip(), value.encode()))
    return headers


def headers_text(headers: Sequence[Header]) -> str:
    """The lines that `written_headers` reads."""
    lines = []
    for name, value in headers:
        if value is None:
            lines.append(name)
            continue
        text = value.decode(errors="replace")
        is_exact = text.encode() == value and text.isprintable() and not text.startswith("0x")
        lines.append(f"{name}: {text if is_exact else f'0x{value.hex()}'}")
    return "\n".join(lines)


def editable(data: bytes | None, content: Content, schemas: Schemas) -> EditableText:
    """A key or value as text that makes the same bytes again; decoded if the encoder gives the same bytes back."""
    if data is None:
        return EditableText("", "null")
    candidates = []
    if content.format in ("avro", "protobuf") and content.schema and not content.schema.startswith("registry "):
        candidates.append((content.text, f"{content.format}:{content.schema}"))
    elif content.format in ("messagepack", "integer"):
        candidates.append((content.text, content.format))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text.encode() == data and is_printable(text) and "\r" not in text:
        candidates.append((text, "json" if content.format == "json" else "text"))
    for text, format_ in candidates:
        try:
            if encode(format_, text, schemas) == data:
                return EditableText(text, format_)
        except ValueError:
            continue
    return EditableText(data.hex(), "hex")


def editable_record(record: FoundRecord, schemas: Schemas) -> tuple[EditableText, EditableText]:
    """The key and value of a record as text."""
    decoder = Decoder(GUESS, schemas)
    return (
        editable(record.key, decoder.content(record.key), schemas),
        editable(record.value, decoder.content(record.value), schemas),
    )


def produce_record(
    cluster: Cluster, topic: str, record: WrittenRecord, codec: str = "none", copies: int = 1
) -> list[tuple[int, int]]:
    """Produce a record, or several equal ones; the partition and offset of the first of each batch.

    Errors: KafkaError, NotFound, TimedOut, Unreachable.
    """
    acknowledged: list[tuple[int, int]] = []
    partitions = len(cluster.find_topic(topic).leaders)
    if record.partition is not None and not 0 <= record.partition < partitions:
        raise NotFound(f"topic {topic!r} has no partition {record.partition}; it has {partitions}")

    def add(batch: Batch) -> None:
        acknowledged.append((batch.partition, batch.base_offset))

    producer = Producer(cluster, lambda count: Murmur2(count, randrange), codec=CODECS[codec], on_acknowledged=add)
    for _ in range(copies):
        producer.send(
            topic,
            record.value,
            record.key,
            record.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp,
        )
    producer.flush()
    return acknowledged
