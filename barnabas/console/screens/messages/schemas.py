"""The schemas with which messages are decoded: Avro and Protobuf, of files or added here."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from barnabas.console.console import Call
from barnabas.console.messages.contents.schemas import MAX_SCHEMA_BYTES
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.messages.views import Text, schemas_of, wrong_input


@dataclass(frozen=True)
class SchemaRow:
    """A schema. `formats` are the names by which messages are decoded with it."""

    name: str
    kind: str
    source: str
    formats: list[str]


@dataclass(frozen=True)
class SchemaList:
    """The schemas of the console, and the address of its registry."""

    schemas: list[SchemaRow]
    registry: str | None


@resource("/schemas", template="messages/schemas.html", summary="The schemas with which messages are decoded.")
def list_of_schemas(call: Call) -> SchemaList:
    """Schemas of the registry are found by their ids and are not listed."""
    schemas = schemas_of(call)
    rows = [
        SchemaRow(
            schema.name,
            schema.kind,
            schema.source,
            [f"protobuf:{schema.name}#{message}" for message in schema.messages] or [f"avro:{schema.name}"],
        )
        for schema in schemas.list()
    ]
    return SchemaList(rows, getattr(schemas.registry, "url", None))


@dataclass(frozen=True, kw_only=True)
class AddSchema:
    """A schema: the text of an .avsc or .proto file, or a descriptor set of protoc in base64."""

    name: Text
    kind: Literal["avro", "protobuf", "descriptor-set"]
    text: Annotated[str, msgspec.Meta(max_length=2 * MAX_SCHEMA_BYTES)]


@action("/schemas/add", summary="Add or replace a schema, until the console ends.")
def add_schema(form: AddSchema, call: Call) -> Done:
    """All users of the console can decode with it."""
    data = form.text.encode(errors="replace")
    with wrong_input("text"):
        if form.kind == "descriptor-set":
            try:
                data = b64decode(form.text, validate=True)
            except Base64Error:
                raise ValueError("a descriptor set is sent in base64") from None
        schemas_of(call).add(form.name.strip(), form.kind, data, call.session.user or "added here")
    return Done(f"Added the schema {form.name.strip()}.", "/schemas")


@dataclass(frozen=True, kw_only=True)
class RemoveSchema:
    """Which schema."""

    name: Text


@action("/schemas/remove", summary="Remove a schema from the console.")
def remove_schema(form: RemoveSchema, call: Call) -> Done:
    """Messages are decoded without it from now on."""
    with wrong_input("name"):
        schemas_of(call).remove(form.name)
    return Done(f"Removed the schema {form.name}.", "/schemas")
