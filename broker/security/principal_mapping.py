r"""`ssl.principal.mapping.rules`: how a distinguished name becomes the name of a principal (KIP-371, KIP-492).

Rules are tried in order, and the first whose pattern matches the whole name gives the result: `DEFAULT` the name as it
is, `RULE:pattern/replacement/[LU]` the replacement with `$1` for a group, in lower or upper case if asked for. A slash
is written `\/`. If no rule matches, the connection is refused. Source: Kafka 4.4 `SslPrincipalMapper`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas.wire.configdef import ConfigError

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(_RULE)


class NoMatchingRuleError(Exception):
    """No rule applies to a name."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        """The result; None if the rule does not apply."""
        if self.pattern is None:
            return name
        if not self.pattern.fullmatch(name):
            return None
        principal = self.pattern.sub(self.replacement, name)
        return {"L": principal.lower(), "U": principal.upper()}.get(self.case, principal)


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, text: str) -> None:
        """ConfigError for a rule that cannot be parsed."""
        self._text = text
        self._rules = [rule for part in _split(text) if (rule := _parse(part)) is not None]

    def name_of(self, distinguished_name: str) -> str:
        """The name of the principal. NoMatchingRuleError if the rules have none."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRuleError(f"No rules apply to {distinguished_name}, rules {self._text}")


def _split(text: str) -> list[str]:
    return [match.group(1) for match in _SPLITTER.finditer(text.strip() or "DEFAULT")]


def _parse(rule: str) -> _Rule | None:
    match = _PARSER.match(rule)
    assert match is not None  # the last alternative always matches
    if match.end() != len(rule):
        raise ConfigError(f"Invalid rule: {rule} (ssl.principal.mapping.rules)")
    default, pattern, replacement, case, _ = match.groups()
    if default is not None:
        return _Rule(None, "", "")
    if pattern is None:
        return None  # an empty rule
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"Invalid rule: {rule} (ssl.principal.mapping.rules): {error}") from error
    return _Rule(compiled, _replacement(replacement, compiled.groups), case)


def _replacement(text: str, groups: int) -> str:
    r"""Java's replacement as Python's: `$1` is a group if the pattern has it, `\x` is x."""

    def translate(match: re.Match[str]) -> str:
        escaped, number = match.groups()
        if escaped is not None:
            return escaped.replace("\\", "\\\\")
        return rf"\g<{number}>" if int(number) <= groups else f"${number}"

    return re.sub(r"\\(.)|\$(\d)", translate, text)
