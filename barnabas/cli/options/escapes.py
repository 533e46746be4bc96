"""Backslash escapes and % verbs, as in kcat and rpk.

    %t topic   %p partition   %o offset   %k key   %v or %s value   %h headers   %T or %d timestamp (ms)
    %K bytes of the key   %S or %V bytes of the value   %R the same as a binary int32 (big-endian)   %% a percent sign
    \\n \\t \\r \\0 \\\\ \\xNN

A null key or value prints nothing, and its length is -1. On a terminal, bytes that would control it or are not UTF-8
are shown as \\xNN.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from barnabas.wire.batches.records import Record

Verb = Callable[["tuple[str, int]", "Record"], bytes]
Show = Callable[[bytes], bytes]

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_SIMPLE = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}


def unescape(text: str, option: str) -> bytes:
    """Decode backslash escapes; a usage error names `option`."""

    def replace(match: re.Match[bytes]) -> bytes:
        escape: bytes = match[1]
        if escape[:1] == b"x" and len(escape) == 3:
            return bytes([int(escape[1:], 16)])
        if escape not in _SIMPLE:
            raise click.BadParameter(
                f"knows no \\{escape.decode(errors='replace')}; there are \\n \\t \\r \\0 \\\\ \\xNN", param_hint=option
            )
        return _SIMPLE[escape]

    return _ESCAPE.sub(replace, text.encode())


def _number(value: int) -> bytes:
    return b"%d" % value


def _length(value: bytes | None) -> bytes:
    return _number(-1 if value is None else len(value))


def _headers(record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (value if value is not None else b"NULL") for name, value in record.headers)


def printable(data: bytes) -> bytes:
    """Bytes that a terminal shows as they are: controls other than newline and tab, and invalid UTF-8, as `\\xNN`."""
    if data.isascii() and (text := data.decode()).isprintable():
        return data
    text = data.decode(errors="surrogateescape")
    return "".join(char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text).encode()


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogateescape"))


VERBS: dict[str, Verb] = {
    "t": lambda partition, _: partition[0].encode(),
    "p": lambda partition, _: _number(partition[1]),
    "o": lambda _, record: _number(record.offset),
    "k": lambda _, record: record.key or b"",
    "v": lambda _, record: record.value or b"",
    "s": lambda _, record: record.value or b"",
    "h": lambda _, record: _headers(record),
    "R": lambda _, record: (-1 if record.value is None else len(record.value)).to_bytes(4, "big", signed=True),
    "T": lambda _, record: _number(record.timestamp),
    "d": lambda _, record: _number(record.timestamp),
    "K": lambda _, record: _length(record.key),
    "S": lambda _, record: _length(record.value),
    "V": lambda _, record: _length(record.value),
    "%": lambda _, __: b"%",
}


def compile_format(text: str, show: Show | None = None, shown: str = "kvsh") -> Verb:
    """Compile a format string; `show` changes what the verbs in `shown` print. A usage error names -f."""
    parts: list[Verb] = []
    for index, piece in enumerate(re.split(r"%(.|$)", text, flags=re.DOTALL)):
        if index % 2:
            if piece not in VERBS:
                raise click.BadParameter(
                    f"knows no %{piece}; there are {' '.join('%' + verb for verb in VERBS)}", param_hint="-f"
                )
            parts.append(VERBS[piece] if show is None or piece not in shown else _shown(VERBS[piece], show))
        elif piece:
            parts.append(_constant(unescape(piece, "-f")))
    return lambda partition, record: b"".join([part(partition, record) for part in parts])


def _shown(verb: Verb, show: Show) -> Verb:
    return lambda partition, record: show(verb(partition, record))


def _constant(literal: bytes) -> Verb:
    return lambda _partition, _record: literal
