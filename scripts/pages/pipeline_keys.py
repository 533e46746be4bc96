"""`docs/reference/pipeline-keys.md`: every key of every job's file, generated from its declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from barnabas.spark.jobs import NAMES, find_job
from barnabas.spark.settings.config import JobConfig, Start

NAMED: dict[Any, str] = {str: "text", int: "integer", float: "number", bool: "boolean", datetime: "time"}


def sections() -> Iterator[tuple[str, str, list[str]]]:
    """Title, text and items of each section: the keys of every file, the jobs, the tables shared by several jobs."""
    jobs = {name: find_job(name) for name in NAMES}
    users: dict[type[BaseModel], list[str]] = {}
    for name, job in jobs.items():
        for table in _tables(job.config).values():
            users.setdefault(table, []).append(name)
    shared = {
        table: key for job in jobs.values() for key, table in _tables(job.config).items() if len(users[table]) > 1
    }
    yield "## Every job", "", _items(JobConfig, shared)
    for name, job in jobs.items():
        yield (
            f"## {name}",
            job.summary,
            [item for item in _items(job.config, shared) if item not in _items(JobConfig, shared)],
        )
        for key, table in _tables(job.config).items():
            if table not in shared:
                yield f"### {name}: [{key}]", _text(table), _items(table, {})
    yield "## Tables that several jobs have", "", []
    for table, key in shared.items():
        used = "every job" if len(users[table]) == len(jobs) else ", ".join(users[table])
        yield f"### [{key}]", f"{_text(table)} In {used}.", _items(table, {})


def _tables(kind: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The tables of a file, by key."""
    annotations = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    return {
        key: type_ for key, type_ in annotations.items() if isinstance(type_, type) and issubclass(type_, BaseModel)
    }


def _items(kind: type[BaseModel], shared: Mapping[type[BaseModel], str]) -> list[str]:
    """An item of a list for each key; keys first, as in a file, then tables."""
    items = [_item(field.alias or name, field, shared) for name, field in kind.model_fields.items()]
    return sorted(items, key=lambda item: item.startswith("- `["))


def _item(key: str, field: FieldInfo, shared: Mapping[type[BaseModel], str]) -> str:
    is_table = _name(field.annotation).startswith("table")
    type_ = f"[table](#{key})" if field.annotation in shared else _type(field)
    name = f"`[{key}]`" if is_table else f"`{key}`"
    facts = ", ".join(fact for fact in (type_, _default(field)) if fact)
    return f"- {name}: {facts}. {field.description or ''}".rstrip()


def _text(kind: type[BaseModel]) -> str:
    return (kind.__doc__ or "").strip()


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    value = field.default
    if value in (None, "", [], {}) or isinstance(value, BaseModel):
        return ""
    return f"default `{json.dumps(value)}`"


def _type(field: FieldInfo) -> str:
    bounds = [f"{sign} {getattr(rule, name)}" for rule in field.metadata
              for name, sign in (("gt", ">"), ("ge", "≥"), ("le", "≤")) if hasattr(rule, name)]  # fmt: skip
    return ", ".join([_name(field.annotation), *bounds])


def _name(annotation: Any) -> str:
    if annotation == Start:
        return "`earliest`, `latest`, time or offsets"
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) is list:
        return f"list of {_name(get_args(annotation)[0])}"
    if get_origin(annotation) is dict:
        return f"table of {_name(get_args(annotation)[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    parts = [_name(part) for part in get_args(annotation) if part is not NoneType]
    return " or ".join(dict.fromkeys(parts)) if parts else NAMED[annotation]
