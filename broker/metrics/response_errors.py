"""Finds the error codes in a response, of the whole request and of its items, from the declaration of its message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.codec.fields import StructBase
from barnabas.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

MOST_ITEMS: Final = 1000
"""How many errors of one response are counted."""
CODE: Final = "error_code"

FirstError = Callable[[Any], int]
"""Returns an error code of a response, 0 if it has none."""

_Shape = tuple[bool, tuple[tuple[str, type[StructBase]], ...]]
_shapes: dict[type[StructBase], _Shape] = {}


def first_error_of(response_class: type[Message]) -> FirstError:
    """The function that finds an error in responses of this class.

    A Fetch tells the errors of its partitions when it reads them (`Meter.failed_fetch`).
    """
    has_code, lists = _shape(response_class)
    if response_class is FetchResponse:
        lists = ()
    if has_code and not lists:
        return attrgetter(CODE)
    if not lists:
        return _none
    return _in_list(*lists[0]) if len(lists) == 1 and not has_code else _first_of


def codes_of(message: StructBase) -> Iterator[int]:
    """The error codes in a response that are not NONE."""
    has_code, lists = _shape(type(message))
    if has_code and message.error_code:  # type: ignore[attr-defined]
        yield message.error_code  # type: ignore[attr-defined]
    if type(message) is FetchResponse:
        return
    for name, _ in lists:
        for item in getattr(message, name) or ():
            yield from codes_of(item)


def _in_list(name: str, item_class: type[StructBase]) -> FirstError:
    """The function for a class whose only error codes are those of the items of a list."""
    has_code, lists = _shape(item_class)
    in_item: FirstError = _first_of
    if not lists:
        in_item = attrgetter(CODE)
    elif len(lists) == 1 and not has_code:
        in_item = _in_list(*lists[0])

    def find(message: Any) -> int:
        for item in getattr(message, name) or ():
            if code := in_item(item):
                return code
        return 0

    return find


def _first_of(struct: Any) -> int:
    return next(codes_of(struct), 0)


def _none(_: object) -> int:
    return 0


def _shape(struct_class: type[StructBase]) -> _Shape:
    """Whether a class has an error code, and the lists in it, by name and class, whose items have some."""
    if (known := _shapes.get(struct_class)) is not None:
        return known
    has_code = False
    lists = []
    for field in struct_class.declared:
        if field.name == CODE:
            has_code = True
        item = field.struct_class if field.kind == "array" else None
        if item is not None and any(_shape(item)):
            lists.append((field.name, item))
    shape = _shapes[struct_class] = has_code, tuple(lists)
    return shape
