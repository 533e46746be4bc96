"""Regular expressions that members subscribe to, and the topics they stand for (KIP-848).

The syntax is RE2's, as Kafka's, and an expression has to match a topic's whole name; internal topics are no exception.
The engine needs time linear in the name, so no expression can hold up the broker; it is imported when the first one
comes. Topics that come or go are looked at one by one: nothing but a member's subscription makes us look at all names.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_log = logging.getLogger(__name__)

_COMPILED_AT_MOST = 1_000
"""Expressions that are kept compiled."""


class Pattern(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str, /) -> object | None:
        """Not None when the expression matches the whole text."""


@lru_cache(maxsize=_COMPILED_AT_MOST)
def compiled(regex: str) -> Pattern:
    """The expression, ready to match. KafkaError INVALID_REGULAR_EXPRESSION, also for one that would take too much."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {text}.",
        ) from None
    return pattern


def resolve(regexes: Collection[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each expression those of `names` that it matches; none for an invalid one, as an old record may hold."""
    patterns = {regex: pattern for regex in regexes if (pattern := _compiled_or_none(regex)) is not None}
    names = list(names)
    resolved: dict[str, frozenset[str]] = dict.fromkeys(regexes, frozenset())
    for regex, pattern in patterns.items():
        matches = pattern.fullmatch
        resolved[regex] = frozenset(name for name in names if matches(name) is not None)
    return resolved


def resolve_changes(
    regex: str, resolved: frozenset[str], changed: Iterable[str], exists: Callable[[str], bool]
) -> frozenset[str]:
    """What the expression stands for now: `resolved` as it was, and `changed`, the topics that came or went since.

    `exists` tells whether a topic is there. The same object comes back when nothing has changed.
    """
    changed = frozenset(changed)
    now = (resolved - changed) | resolve([regex], filter(exists, changed))[regex]
    return resolved if now == resolved else now


def _compiled_or_none(regex: str) -> Pattern | None:
    try:
        return compiled(regex)
    except KafkaError as refused:
        _log.warning("A regular expression is left out: %s", refused)
        return None
