"""Regular expressions in subscriptions: compiling them and matching them with topic names (KIP-848).

The syntax is RE2's, as in Kafka, and an expression has to match the whole name of a topic; internal topics are not
excluded. Matching takes time linear in the length of the name. RE2 is imported when the first expression is compiled.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger(__name__)

_COMPILED_AT_MOST = 1_000
"""How many compiled expressions are kept."""


class Pattern(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str, /) -> object | None:
        """Not None when the expression matches the whole text."""


@lru_cache(maxsize=_COMPILED_AT_MOST)
def compiled(regex: str) -> Pattern:
    """Compile an expression. KafkaError INVALID_REGULAR_EXPRESSION when it is invalid or would take too much memory."""
    from barnabas.coord.re2_patterns import compile_re2

    try:
        pattern: Pattern = compile_re2(regex)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None
    return pattern


def matching(regex: str, names: Iterable[str]) -> set[str]:
    """The names that an expression matches; none if it is invalid, as in a record of another broker."""
    try:
        fullmatch = compiled(regex).fullmatch
    except KafkaError as refused:
        _log.warning("Ignoring a regular expression: %s", refused)
        return set()
    return {name for name in names if fullmatch(name) is not None}
