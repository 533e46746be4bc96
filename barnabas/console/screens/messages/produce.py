"""A record to write: a new one, an old one edited, a tombstone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.console.console import Call
from barnabas.console.messages.one_record import read_record
from barnabas.console.messages.producing import (
    MOST_COPIES,
    WRITABLE,
    EditableText,
    WrittenRecord,
    editable_record,
    headers_text,
    produce_record,
    written_bytes,
    written_headers,
)
from barnabas.console.messages.starts import parse_time
from barnabas.console.pages import part
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.messages.records import parse_place
from barnabas.console.screens.messages.views import Text, formats_of, read_here, schemas_of, wrong_input
from barnabas.console.values import BadInput

MOST_EDITED_BYTES = 1024 * 1024
"""A longer key or value is not put into a form."""

Written = Annotated[str, msgspec.Meta(max_length=8_000_000)]


@dataclass(frozen=True, kw_only=True)
class NewRecordQuery:
    """The form's first content: empty, or the record `PARTITION:OFFSET`."""

    topic: str
    copy: Text = ""


@dataclass(frozen=True)
class NewRecord:
    """The fields of the form."""

    topic: str
    partitions: int
    key: EditableText
    value: EditableText
    headers: str
    partition: int | None
    formats: list[str]
    copied: str


@resource("/messages/{topic}/new-record", template="messages/new_record.html", summary="The form of a new record.")
def new_record(cluster: Cluster, query: NewRecordQuery, call: Call) -> NewRecord:
    """An old record is shown in the format that makes the same bytes again."""
    schemas = schemas_of(call)
    partitions = len(cluster.find_topic(query.topic).leaders)
    formats = [each for each in formats_of(schemas, WRITABLE) if each not in ("avro", "protobuf")]
    if not query.copy:
        empty, value = EditableText("", "text"), EditableText("", "json")
        return NewRecord(query.topic, partitions, empty, value, "", None, formats, "")
    with wrong_input("copy"):
        partition, offset = parse_place(query.copy)
    record, _ = read_here(call, cluster, read_record, query.topic, partition, offset)
    if max(record.key_size, record.value_size) > MOST_EDITED_BYTES:
        size = max(record.key_size, record.value_size)
        raise BadInput(
            f"copy: the record has {size} bytes, too many to edit here; copy it with barnabas consume --json"
        )
    key, value = editable_record(record, schemas)
    headers = headers_text(record.headers)
    return NewRecord(query.topic, partitions, key, value, headers, partition, formats, query.copy)


@dataclass(frozen=True, kw_only=True)
class ProduceForm:
    """A record: texts and the formats that make bytes of them; the format null makes a tombstone."""

    topic: str
    key: Written = ""
    key_format: Text = "text"
    value: Written = ""
    value_format: Text = "text"
    headers: Written = ""
    """One a line: `name: value`; `name` alone is null, `name: 0x00ff` are bytes."""
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    """None: by the key, or any."""
    timestamp: Text = ""
    """Empty: now."""
    codec: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    copies: Annotated[int, msgspec.Meta(ge=1, le=MOST_COPIES)] = 1


@action("/messages/{topic}/produce", summary="Produce a record.", secrets=("key", "value", "headers"))
def produce(cluster: Cluster, form: ProduceForm, call: Call) -> Done:
    """Waits until all in-sync replicas have it."""
    schemas = schemas_of(call)
    with wrong_input():
        key = written_bytes("key", form.key_format, form.key, schemas)
        value = written_bytes("value", form.value_format, form.value, schemas)
        headers = written_headers(form.headers)
    with wrong_input("timestamp"):
        timestamp = parse_time(form.timestamp) if form.timestamp else None
    record = WrittenRecord(key, value, headers, form.partition, timestamp)
    places = produce_record(cluster, form.topic, record, form.codec, form.copies)
    what = "a tombstone" if value is None else "a record"
    if form.copies > 1:
        what = f"{form.copies} records"
    partition, offset = places[0] if places else (-1, -1)
    path = f"/messages/{part(form.topic)}"
    if offset < 0:
        return Done(f"Produced {what}.", path)
    return Done(f"Produced {what}: partition {partition}, offset {offset}.", f"{path}/{partition}/{offset}")
