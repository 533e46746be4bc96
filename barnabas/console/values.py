"""Between requests and dataclasses: fields from texts or JSON, JSON from views (msgspec).

A text becomes a number, a boolean or a list as the field's type says. A field of type `dict[str, str]` takes the texts
named `FIELD.KEY`. An empty text for a field that is no text leaves the field's default. Wrong values are `BadInput`,
with a sentence that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

_WHERE = re.compile(r"^(?P<text>.*) - at `\$\.?(?P<field>[^`]*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]*)`")
TRUE_WORDS, FALSE_WORDS = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


class BadInput(Exception):  # noqa: N818 (as the client's errors)
    """A value of a request is wrong; the text is one sentence that names the field."""


def from_texts(input_type: type, texts: Iterable[tuple[str, str]], path: Mapping[str, str]) -> Any:
    """An instance of a dataclass from the texts of a query string or a form, and those of the path."""
    kinds = _kinds(input_type)
    values: dict[str, Any] = {}
    for name, text in texts:
        field, _, key = name.partition(".")
        kind = kinds.get(name) or (kinds.get(field) if key else None)
        if kind is None:
            continue  # such as the CSRF token
        if kind is dict and key:
            values.setdefault(field, {})[key] = text
        elif kind is list:
            values.setdefault(name, []).append(text)
        elif kind is bool:
            values[name] = _boolean(name, text)
        elif text or kind is str:
            values[name] = text
    values |= {name: text for name, text in path.items() if name in kinds}
    return _converted(values, input_type, strict=False)


def from_json(input_type: type, body: bytes, path: Mapping[str, str]) -> Any:
    """An instance of a dataclass from a JSON object and the texts of the path."""
    try:
        values = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadInput("the body is nested too deeply") from None
    if not isinstance(values, dict):
        raise BadInput("the body must be a JSON object")
    kinds = _kinds(input_type)
    unknown = [name for name in values if name not in kinds]
    if unknown:
        raise BadInput(f"there is no field {unknown[0]!r}; there are {', '.join(kinds)}")
    texts = {name: text for name, text in path.items() if name in kinds}
    texts = {name: msgspec.convert(text, str) for name, text in texts.items()}
    return _converted(values | texts, input_type, strict=False)


def to_json(value: object) -> bytes:
    """The JSON of a view."""
    return msgspec.json.encode(value)


def _boolean(name: str, text: str) -> bool:
    if text.lower() in TRUE_WORDS:
        return True
    if text.lower() in (*FALSE_WORDS, ""):
        return False
    raise BadInput(f"{name}: must be true or false, not {text!r}")


def _converted(values: Mapping[str, Any], input_type: type, *, strict: bool) -> Any:
    try:
        return msgspec.convert(values, input_type, strict=strict)
    except msgspec.ValidationError as error:
        raise BadInput(_sentence(str(error), values)) from None


def _sentence(text: str, values: Mapping[str, Any]) -> str:
    if missing := _MISSING.match(text):
        return f"{missing['field']} is missing"
    if where := _WHERE.match(text):
        reason = where["text"][:1].lower() + where["text"][1:]
        name = where["field"]
        value = values.get(name)
        is_told = not isinstance(value, str) or len(value) >= 100 or repr(value) in reason
        return f"{name}: {reason}" + ("" if is_told else f", not {value!r}")
    return text


@cache
def _kinds(input_type: type) -> dict[str, type]:
    """For each field: list, dict, bool, str, or int for other types that texts are converted to."""
    hints = get_type_hints(input_type, include_extras=True)
    return {field.name: _kind(hints[field.name]) for field in fields(input_type)}


def _kind(hint: Any) -> type:
    origin = get_origin(hint)
    if origin is Annotated:
        return _kind(get_args(hint)[0])
    if origin in (Union, UnionType):
        kinds = [_kind(part) for part in get_args(hint) if part is not NoneType]
        has_none = NoneType in get_args(hint)
        return int if has_none and kinds == [str] else kinds[0]
    if origin in (list, tuple):
        return list
    if origin is dict:
        return dict
    if hint in (bool, str):
        return hint  # type: ignore[no-any-return]
    return int
