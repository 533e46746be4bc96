"""The keyword constructor of a declared class, generated as straight-line code on its first use.

The broker constructs several objects for every response; a generic loop over the fields takes five times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.wire.fields import FRESH

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.wire.fields import StructBase


def make_constructor(cls: type[StructBase]) -> Callable[..., None]:
    """`__init__(self, *, field=default, ...)` of a class."""
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
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made
