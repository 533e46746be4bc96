"""The values of a request of the control channel, read with their types. A wrong value is a ControlError."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from barnabas.kit.errors import ControlError

T = TypeVar("T")
_NONE = object()
"""There is no default: the value must be given."""


class Values:
    """The values of a request, by name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def only(self, known: Iterable[str]) -> None:
        """Refuse names that the operation does not know."""
        known = tuple(known)
        unknown = sorted(self._values.keys() - set(known))
        if unknown:
            raise ControlError(f"Unknown: {', '.join(unknown)}; known are {', '.join(known) or 'none'}")

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: T) -> str | T: ...
    def text(self, name: str, default: Any = _NONE) -> Any:
        """A text."""
        return self._typed(name, str, "a text", default)

    @overload
    def integer(self, name: str) -> int: ...
    @overload
    def integer(self, name: str, default: T) -> int | T: ...
    def integer(self, name: str, default: Any = _NONE) -> Any:
        """A whole number."""
        return self._typed(name, int, "a whole number", default)

    def number(self, name: str, default: float) -> float:
        """A number."""
        return float(self._typed(name, (int, float), "a number", default))

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ControlError(f"{name} must be true or false, not {value!r}")
        return value

    def data(self, name: str) -> bytes | None:
        """Bytes, written in base64; None if there are none."""
        return _decoded(name, self.text(name, None))

    def data_by_name(self, name: str) -> dict[str, bytes | None]:
        """An object of bytes, as `data` has them."""
        return {key: _decoded(f"{name}: {key}", text) for key, text in self.mapping(name).items()}

    def list_of(self, name: str) -> list[Any]:
        """A list, empty if it is not there."""
        return list(self._typed(name, list, "a list", []))

    def objects(self, name: str) -> list[Values]:
        """A list of objects, empty if it is not there."""
        objects = self.list_of(name)
        if not all(isinstance(value, dict) for value in objects):
            raise ControlError(f"{name} must be a list of objects")
        return list(map(Values, objects))

    def numbered(self, name: str) -> dict[int, int]:
        """An object of whole numbers by partition, empty if it is not there."""
        numbers = self.mapping(name)
        if not all(index.isdecimal() and type(number) is int for index, number in numbers.items()):
            raise ControlError(f"{name} must be whole numbers by partition")
        return {int(index): number for index, number in numbers.items()}

    def mapping(self, name: str) -> dict[str, Any]:
        """An object, empty if it is not there."""
        return dict(self._typed(name, dict, "an object", {}))

    def has(self, name: str) -> bool:
        """Whether the request has a value of this name."""
        return self._values.get(name) is not None

    def _typed(self, name: str, kind: type | tuple[type, ...], what: str, default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            if default is _NONE:
                raise ControlError(f"{name} is missing")
            return default
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ControlError(f"{name} must be {what}, not {value!r}")
        return value


def _decoded(what: str, text: object) -> bytes | None:
    if text is None:
        return None
    try:
        if isinstance(text, str):
            return b64decode(text, validate=True)
    except ValueError:
        pass
    raise ControlError(f"{what} must be base64")
