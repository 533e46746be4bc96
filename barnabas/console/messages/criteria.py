"""Which records are wanted: by key, value, header, time and an expression over fields, all of which must be true.

Key and value: text that they contain, or `/REGEX/` in RE2. Header: `name`, `name=text` or `name=/REGEX/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.client.records.expression import Decode, Filter
from barnabas.client.records.patterns import compile_pattern
from barnabas.wire.batches.records import Header

MAX_TEXT = 1000

Matches = Callable[[str, int, int, int, "bytes | None", "bytes | None", "list[Header]"], bool]
"""(topic, partition, offset, timestamp, key, value, headers): whether the record is wanted."""
Contains = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a user wants to see. An empty text, and None, do not select. Times are in ms; `until` is exclusive."""

    key: str = ""
    value: str = ""
    header: str = ""
    expression: str = ""
    since: int | None = None
    until: int | None = None

    @property
    def selects(self) -> bool:
        """False if every record is wanted."""
        return self != Criteria()


class Matcher:
    """Criteria, compiled. ValueError with a sentence that names the wrong one.

    `decode` gives the content of a value that is no JSON to the expression.
    """

    def __init__(self, criteria: Criteria, decode: Decode | None = None) -> None:
        self.criteria = criteria
        self._decode = decode
        self._expression = None
        if criteria.expression.strip():
            self._expression = Filter(criteria.expression, decode)
        checks: list[Matches] = []
        if criteria.since is not None or criteria.until is not None:
            checks.append(_in_time(criteria.since, criteria.until))
        if criteria.key:
            key_contains = _contains(criteria.key, "the key")
            checks.append(lambda _t, _p, _o, _ts, key, _v, _h: key is not None and key_contains(key))
        if criteria.value:
            value_contains = _contains(criteria.value, "the value")
            checks.append(lambda _t, _p, _o, _ts, _k, value, _h: value is not None and value_contains(value))
        if criteria.header:
            checks.append(_header_check(criteria.header))
        if self._expression is not None:
            checks.append(self._expression.matches)
        self.matches = _all(checks)

    def __reduce__(self) -> tuple[object, ...]:
        """Another process compiles the criteria itself."""
        return Matcher, (self.criteria, self._decode)

    @property
    def selects(self) -> bool:
        """False if every record is wanted."""
        return self.criteria.selects

    @property
    def unusable(self) -> int:
        """Records that lack a field of the expression, or have one of another type."""
        return 0 if self._expression is None else self._expression.unusable


def _all(checks: list[Matches]) -> Matches:
    if not checks:
        return lambda *_: True
    if len(checks) == 1:
        return checks[0]

    def matches(
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[Header],
    ) -> bool:
        return all(check(topic, partition, offset, timestamp, key, value, headers) for check in checks)

    return matches


def _in_time(since: int | None, until: int | None) -> Matches:
    first, end = since if since is not None else -(2**63), until if until is not None else 2**63
    return lambda _t, _p, _o, timestamp, _k, _v, _h: first <= timestamp < end


def _contains(text: str, what: str) -> Contains:
    """Whether bytes contain a text, or match `/REGEX/`."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"the text to find in {what} has {len(text)} characters, more than {MAX_TEXT}")
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        search = compile_pattern(text[1:-1]).search
        return lambda value: search(value) is not None
    needle = text.encode(errors="replace")
    return lambda value: needle in value


def _header_check(text: str) -> Matches:
    name, equals, content = text.partition("=")
    if not name:
        raise ValueError(f"a header is selected by its name, name=text or name=/REGEX/, not by {text!r}")
    if not equals:
        return lambda _t, _p, _o, _ts, _k, _v, headers: any(header == name for header, _ in headers)
    contains = _contains(content, f"header {name}") if content else (lambda value: not value)
    return lambda _t, _p, _o, _ts, _k, _v, headers: any(
        header == name and value is not None and contains(value) for header, value in headers
    )
