"""kcat's deserializers (-s): a pack string such as `>iq` or `hs` turns bytes into text."""

from __future__ import annotations

import struct

import click

from barnabas.client.errors import ClientError

NUMBERS = "bBhHiIqQ"
LETTERS = f"<>{NUMBERS}cs$"


class Unpacker:
    """One pack string. Numbers are printed in decimal, one after the other, as kcat does."""

    def __init__(self, pack: str) -> None:
        wrong = next((letter for letter in pack if letter not in LETTERS), None)
        if not pack or wrong is not None:
            what = f"has {wrong!r}" if wrong is not None else "is empty"
            raise click.BadParameter(f"the pack string {pack!r} {what}; there are {LETTERS}", param_hint="-s")
        self.pack = pack

    def __call__(self, data: bytes) -> bytes:
        """The text of `data`. ClientError if it does not fit."""
        order, at, out = ">", 0, b""
        for letter in self.pack:
            if letter in "<>":
                order = letter
            elif letter == "$":
                if at < len(data):
                    raise ClientError(
                        f"expected the end of the value, but {len(data) - at} bytes remain (-s {self.pack})"
                    )
            elif letter == "s":
                out, at = out + data[at:], len(data)
            else:
                size = 1 if letter == "c" else struct.calcsize(order + letter)
                if at + size > len(data):
                    left = len(data) - at
                    raise ClientError(f"{letter} needs {size} bytes, but {left} remain (-s {self.pack})")
                piece, at = data[at : at + size], at + size
                out += piece if letter == "c" else b"%d" % struct.unpack(order + letter, piece)[0]
        return out


def parse_serdes(texts: tuple[str, ...]) -> tuple[Unpacker | None, Unpacker | None]:
    """The unpackers of key and value."""
    key: Unpacker | None = None
    value: Unpacker | None = None
    for text in texts:
        if text.startswith("key="):
            key = Unpacker(text[4:])
        elif text.startswith("value="):
            value = Unpacker(text[6:])
        else:
            key = value = Unpacker(text)
    return key, value
