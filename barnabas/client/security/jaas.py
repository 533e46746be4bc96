"""The line of `sasl.jaas.config`: a login module of Kafka's and its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

No error shows the line, which has a password.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"=;]+)|([=;]))')


class JaasError(ValueError):
    """The line is not in JAAS's form; the text is one sentence without any of its values."""


class Login(NamedTuple):
    """A login module and its options."""

    module: str
    options: dict[str, str]

    @property
    def name(self) -> str:
        """The class of the module without its package."""
        return self.module.rpartition(".")[2]


def parse_jaas(text: str) -> Login:
    """The login module of a line. `JaasError` if it is in another form, or if there is more than one module."""
    words = _tokens(text)
    if len(words) < 3 or words[1].lower() not in FLAGS:
        raise JaasError('sasl.jaas.config must be MODULE required NAME="VALUE" ...;')
    if words[-1] != ";" or ";" in words[:-1]:
        raise JaasError("sasl.jaas.config must be one login module, which ends in a semicolon")
    options: dict[str, str] = {}
    rest = words[2:-1]
    if len(rest) % 3 or any(equals != "=" for equals in rest[1::3]):
        raise JaasError('the options of sasl.jaas.config must be NAME="VALUE", separated by blanks')
    for name, value in zip(rest[0::3], rest[2::3], strict=True):
        options[name] = value.removeprefix(_QUOTED)
    return Login(words[0], options)


_QUOTED = "\0"
"""Marks a quoted word, which may be `=` or `;`."""


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError("a quotation mark of sasl.jaas.config is not closed")
        quoted, word, sign = match.groups()
        found.append(_QUOTED + re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else word or sign)
        position = match.end()
    return found
