"""Java's `.properties` format, the format of `server.properties`.

A key ends at the first unescaped `=`, `:` or blank. A backslash at the end of a line continues it. `\\uXXXX`, `\\t`,
`\\n`, `\\r` and `\\f` are escapes; any other escaped character is itself. Two `\\u` may be the halves of one character;
half a character alone, which no text in UTF-8 can have, becomes U+FFFD. `#` and `!` start comment lines. The last value
of a key counts. Source: `java.util.Properties.load`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.wire.configdef import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Parse the text of a file. ConfigError for a malformed `\\u` escape, the only syntax error."""
    settings: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        settings[_unescape(key)] = _unescape(value)
    return settings


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without leading blanks and comments, with continuations joined."""
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANKS)
        if pending is None and (not line or line[0] in "#!"):
            continue
        joined = (pending or "") + line
        if _ends_in_odd_backslashes(line):
            pending = joined[:-1]
        else:
            pending = None
            yield joined
    if pending:
        yield pending


def _ends_in_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    pos = 0
    while pos < len(text):
        char = text[pos]
        pos += 1
        if char == "\\" and pos < len(text):
            char = text[pos]
            pos += 1
            if char == "u":
                char = _unicode_escape(text[pos : pos + 4])
                pos += 4
            else:
                char = _ESCAPES.get(char, char)
        parts.append(char)
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode_escape(digits: str) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise ConfigError(f"Malformed \\uxxxx encoding: \\u{digits}")
    return chr(int(digits, 16))
