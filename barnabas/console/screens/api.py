"""`/api`: the JSON API as a page, and as a document of OpenAPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, get_type_hints

from barnabas.console.openapi import document, field_texts
from barnabas.console.values import to_json

if TYPE_CHECKING:
    from barnabas.console.resources import Declared


@dataclass(frozen=True)
class ApiField:
    """One parameter or field of a body."""

    name: str
    type: str
    is_in_path: bool
    text: str


@dataclass(frozen=True)
class ApiEntry:
    """One path."""

    method: str
    path: str
    kind: str
    """resource, action, stream or download."""
    summary: str
    fields: list[ApiField]


def entries(declared: Sequence[Declared]) -> list[ApiEntry]:
    """The paths of the API, sorted."""
    every = [ApiEntry(each.method, f"/api{each.path}", each.kind, each.summary, _fields(each)) for each in declared]
    return sorted(every, key=lambda entry: (entry.path, entry.method))


def openapi_json(declared: Sequence[Declared]) -> bytes:
    """The document of OpenAPI."""
    return to_json(document(declared))


def _fields(declared: Declared) -> list[ApiField]:
    if declared.input_type is None:
        return []
    hints = get_type_hints(declared.input_type)
    texts = field_texts(declared.input_type)
    return [
        ApiField(
            field.name, _type_name(hints[field.name]), f"{{{field.name}}}" in declared.path, texts.get(field.name, "")
        )
        for field in fields(declared.input_type)
    ]


def _type_name(hint: object) -> str:
    text = hint.__name__ if isinstance(hint, type) and not hasattr(hint, "__args__") else str(hint)
    for module in ("typing.", "barnabas.console."):
        text = text.replace(module, "")
    return text.replace("| None", "or null")
