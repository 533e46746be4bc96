"""JAAS lines as Kafka's server.properties have them (KIP-85): `CLASS required name="value" ... ;`.

A line has one login module. Values may be quoted, with Java's escapes; texts of errors never have a value. Source:
Kafka 4.4 `JaasConfig`, which uses Java's StreamTokenizer.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas.wire.configdef import ConfigError

PACKAGE: Final = "org.apache.kafka.common.security."
PLAIN_LOGIN: Final = f"{PACKAGE}plain.PlainLoginModule"
SCRAM_LOGIN: Final = f"{PACKAGE}scram.ScramLoginModule"
OAUTHBEARER_LOGIN: Final = f"{PACKAGE}oauthbearer.OAuthBearerLoginModule"
LOGIN_MODULES: Final = {
    "PLAIN": PLAIN_LOGIN,
    "SCRAM-SHA-256": SCRAM_LOGIN,
    "SCRAM-SHA-512": SCRAM_LOGIN,
    "OAUTHBEARER": OAUTHBEARER_LOGIN,
}
"""The login module of each mechanism."""
FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
USER_PREFIX: Final = "user_"

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*(?s:.*?)\*/)"
    r"|\"(?P<double>(?:[^\"\\\n]|\\.)*)\"|'(?P<single>(?:[^'\\\n]|\\.)*)'"
    r"|(?P<mark>[=;])|(?P<word>[^\s=;\"'/]+)"
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class LoginModule(NamedTuple):
    """The login module of a line, and its options."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {', '.join(self.options)})"  # without values

    @property
    def class_name(self) -> str:
        """The class of the module without its package."""
        return self.name.rpartition(".")[2]

    @property
    def users(self) -> dict[str, str]:
        """The passwords by user name, of the options `user_NAME`."""
        options = self.options.items()
        return {name.removeprefix(USER_PREFIX): value for name, value in options if name.startswith(USER_PREFIX)}


class _Token(NamedTuple):
    text: str
    is_mark: bool


def parse_jaas(key: str, text: str) -> LoginModule:
    """The login module of a line. ConfigError, with the key's name, for anything but one."""
    tokens = _tokens(key, text)
    if not tokens:
        raise ConfigError(f"{key}: Login module not specified in JAAS config")
    if len(tokens) < 2 or tokens[0].is_mark or tokens[1].text.lower() not in FLAGS:
        raise ConfigError(f"{key}: Login module control flag not specified in JAAS config")
    name, options, at = tokens[0].text, {}, 2
    while at < len(tokens) and not _is(tokens, at, ";"):
        option = tokens[at]
        has_value = _is(tokens, at + 1, "=") and at + 2 < len(tokens) and not tokens[at + 2].is_mark
        if option.is_mark or not has_value:
            where = "an option" if option.is_mark else f"key '{option.text}'"
            raise ConfigError(f"{key}: Value not specified for {where} in JAAS config")
        options[option.text] = tokens[at + 2].text
        at += 3
    if at >= len(tokens):
        raise ConfigError(f"{key}: JAAS config entry not terminated by semi-colon")
    if at + 1 < len(tokens):
        raise ConfigError(f"{key}: JAAS config property contains more than 1 login module, should be 1 module")
    return LoginModule(name, options)


def _is(tokens: list[_Token], at: int, mark: str) -> bool:
    return at < len(tokens) and tokens[at] == _Token(mark, True)


def _tokens(key: str, text: str) -> list[_Token]:
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConfigError(f"{key}: a quote in the JAAS config has no end, or a character has no meaning there")
        at = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            tokens.append(_Token(_ESCAPE.sub(_unescaped, quoted), False))
        elif match["space"] is None:
            tokens.append(_Token(match["mark"] or match["word"], match["mark"] is not None))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    character = match[1]
    if character.isdigit() and character.isascii() and character < "8":
        return chr(int(character, 8))
    return _ESCAPED.get(character, character)
