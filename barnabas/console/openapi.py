"""OpenAPI 3.1 of the JSON API, from the declarations: paths, parameters, bodies, answers.

Descriptions of fields are the texts below them in their dataclasses.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from barnabas import __version__
from barnabas.console.resources import Declared

LOGIN = "/login"
REF = "#/components/schemas/{name}"
WITH_JSON = ("resource", "action")
"""The kinds of declarations whose answer is JSON."""


@dataclass(frozen=True)
class ApiError:
    """Why a request failed."""

    error: str
    """One sentence."""


def document(declared: Iterable[Declared]) -> dict[str, Any]:
    """The document of OpenAPI."""
    every = [each for each in declared if each.path != "/"]
    bodies = [each.input_type for each in every if each.kind == "action" and each.input_type is not None]
    views = [each.view_type for each in every if each.kind in WITH_JSON and each.view_type is not None]
    types = [*dict.fromkeys([*bodies, *views]), ApiError]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    by_type = dict(zip(types, schemas, strict=True))
    for name, kind in _dataclasses(types):
        _describe(components.get(name), kind)
    paths: dict[str, Any] = {}
    for each in every:
        paths.setdefault("/api" + each.path, {})[each.method.lower()] = _operation(each, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Barnabas console", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "securitySchemes": {
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
                "bearer": {"type": "http", "scheme": "bearer", "description": "The token of POST /api/login."},
            },
        },
    }


def _operation(declared: Declared, by_type: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": declared.function.__name__.strip("_"),
        "summary": declared.summary,
        "parameters": list(parameters(declared)),
        "responses": {
            "200": {"description": "OK", "content": _content(declared, by_type)},
            "default": {"description": "A sentence.", "content": {"application/json": {"schema": by_type[ApiError]}}},
        },
    }
    if declared.kind == "action":
        if declared.input_type is not None:
            schema = by_type[declared.input_type]
            operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        operation["security"] = [] if declared.path == LOGIN else [{"csrf": []}, {"bearer": []}]
    return operation


def _content(declared: Declared, by_type: dict[Any, Any]) -> dict[str, Any]:
    if declared.kind == "stream":
        return {"text/event-stream": {"schema": {"type": "string"}}}
    if declared.kind not in WITH_JSON:
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": by_type.get(declared.view_type, {})}}


def parameters(declared: Declared) -> Iterator[dict[str, Any]]:
    """The parameters of the path, and of the query string of what is no action."""
    if declared.input_type is None:
        return
    hints = get_type_hints(declared.input_type, include_extras=True)
    described = field_texts(declared.input_type)
    for field in fields(declared.input_type):
        in_path = f"{{{field.name}}}" in declared.path
        if declared.kind == "action" and not in_path:
            continue
        (schema,), _ = msgspec.json.schema_components([hints[field.name]], ref_template=REF)
        yield {
            "name": field.name,
            "in": "path" if in_path else "query",
            "required": in_path,
            "description": described.get(field.name, ""),
            "schema": schema,
        }


@cache
def field_texts(kind: type) -> dict[str, str]:
    """The texts below the fields of a dataclass and its bases."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not is_dataclass(base):
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError):
            continue  # without sources
        assert isinstance(tree, ast.ClassDef)
        name = ""
        for statement in tree.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and name:
                texts[name] = inspect.cleandoc(str(statement.value.value))
                name = ""
    return texts


def _dataclasses(types: Iterable[Any]) -> Iterator[tuple[str, type]]:
    """Every dataclass that is reached from these types, by its name in the document."""
    waiting, seen = list(types), set()
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        base = get_origin(kind) or kind
        if isinstance(base, type) and is_dataclass(base) and base not in seen:
            seen.add(base)
            yield base.__name__, base
            waiting += get_type_hints(base).values()


def _describe(schema: dict[str, Any] | None, kind: type) -> None:
    for name, text in field_texts(kind).items():
        if schema is not None and name in schema.get("properties", {}):
            schema["properties"][name].setdefault("description", text)
