"""The targets, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

NAMES = ("wire", "records", "compression", "sasl", "jwt", "pem", "properties", "rules", "telemetry")


class Target(NamedTuple):
    """A fuzz target."""

    check: Callable[[bytes], None]
    """Takes any bytes; an exception is a finding."""
    seeds: Callable[[], Iterator[bytes]]
    max_bytes: int
    """The longest input that is tried."""
    prepare: Callable[[Callable[..., object]], None] | None
    """Gives code that is made at run time to a function that instruments it."""


def target(name: str) -> Target:
    """The target of a name; its modules are imported now."""
    module = import_module(f"{__name__}.{name}")
    return Target(module.check, module.seeds, getattr(module, "MAX_BYTES", 4096), getattr(module, "prepare", None))


class Input:
    """Takes an input apart: numbers and pieces from its beginning."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def number(self, below: int) -> int:
        """A number of one byte, or of two where they are needed; 0 when nothing is left."""
        size = 1 if below <= 256 else 2
        taken, self.rest = self.rest[:size], self.rest[size:]
        return int.from_bytes(taken, "big") % below

    def piece(self) -> bytes:
        """A piece with its length in two bytes before it."""
        size = int.from_bytes(self.rest[:2], "big")
        taken, self.rest = self.rest[2 : 2 + size], self.rest[2 + size :]
        return taken

    def text(self) -> str:
        """A piece as text, as the protocol's strings are."""
        return self.piece().decode("utf-8", "replace")


def pieces(*parts: bytes | str) -> bytes:
    """An input that `Input.piece` takes apart."""
    encoded = (part.encode() if isinstance(part, str) else part for part in parts)
    return b"".join(len(part).to_bytes(2, "big") + part for part in encoded)


def is_sayable(*texts: str) -> None:
    """AssertionError for a text that no response and no log line can have: UTF-8 does not encode it."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise AssertionError(f"{text!r} cannot be encoded as UTF-8") from None
