"""Which clients a subscription is for: `match`, a list of `name=pattern` (KIP-714).

A pattern has to match the whole value. Its syntax is RE2's, which takes linear time; Kafka 4.4 has Java's, whose back
references and lookarounds are refused here. RE2 is imported with the first pattern.
Source: Kafka 4.4 `ClientMetricsConfigs.parseMatchingPatterns`, `ClientMetricsInstanceMetadata`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.wire.errors import ErrorCode, KafkaError

CLIENT_INSTANCE_ID: Final = "client_instance_id"
CLIENT_ID: Final = "client_id"
CLIENT_SOFTWARE_NAME: Final = "client_software_name"
CLIENT_SOFTWARE_VERSION: Final = "client_software_version"
CLIENT_SOURCE_ADDRESS: Final = "client_source_address"
CLIENT_SOURCE_PORT: Final = "client_source_port"
SELECTORS: Final = frozenset(
    {
        CLIENT_INSTANCE_ID,
        CLIENT_ID,
        CLIENT_SOFTWARE_NAME,
        CLIENT_SOFTWARE_VERSION,
        CLIENT_SOURCE_ADDRESS,
        CLIENT_SOURCE_PORT,
    }
)

ClientAttributes = Mapping[str, str | None]
"""The attributes of a client, by selector."""
Patterns = Mapping[str, Any]
"""A compiled expression by selector."""


def parse_match(items: Iterable[str]) -> Patterns:
    """Parse the values of `match`; of equal selectors the last counts. KafkaError INVALID_CONFIG for an invalid one."""
    patterns = {}
    for item in items:
        parts = _java_split(item)
        if len(parts) != 2 or parts[0].strip() not in SELECTORS:
            raise _illegal(item)
        patterns[parts[0].strip()] = _compiled(parts[1].strip(), item)
    return patterns


def is_match(patterns: Patterns, client: ClientAttributes) -> bool:
    """Whether a client has all attributes that the patterns ask for; no patterns match every client."""
    for selector, pattern in patterns.items():
        value = client[selector]
        if value is None or pattern.fullmatch(value) is None:
            return False
    return True


def _java_split(item: str) -> list[str]:
    """Java's `split("=")`: without empty parts at the end."""
    parts = item.split("=")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _compiled(regex: str, item: str) -> Any:
    from barnabas.coord.re2_patterns import compile_re2

    try:
        return compile_re2(regex)
    except ValueError:
        raise _illegal(item) from None


def _illegal(item: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item}")
