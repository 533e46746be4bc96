"""The subscriptions of client metrics, and what a client gets of all that match it (KIP-714).

A client has one subscription: the union of the metrics, and the shortest interval, of all that match. Its id is
computed as by Kafka, from the order that Java's HashSet has, so that a client may go on with it at a broker of either
kind.
Source: Kafka 4.4 `ClientMetricsManager`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.coord.client_metrics.matching import ClientAttributes, Patterns, is_match, parse_match
from barnabas.coord.partitioning import java_hash
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.configdef import parse_list
from barnabas.wire.errors import ErrorCode, KafkaError

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"
ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000
_MIN_INTERVAL_MS, _MAX_INTERVAL_MS = 100, 3_600_000
MATCHED_IN_A_STEP: Final = 100
"""Subscriptions that are compared with a client in one step."""


class Subscription(NamedTuple):
    """One resource of client metrics."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Patterns


class Granted(NamedTuple):
    """The metrics that one client is asked to push."""

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


class Subscriptions:
    """All subscriptions; `version` changes with each of them."""

    def __init__(self) -> None:
        self.version = 0
        self._by_name: dict[str, Subscription] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def update(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply the configs of a resource; without any it is removed. KafkaError when they are invalid."""
        if configs:
            self._by_name[name] = Subscription(
                parse_list(configs.get(METRICS, "")),
                int(configs.get(INTERVAL_MS, DEFAULT_INTERVAL_MS)),
                parse_match(parse_list(configs.get(MATCH, ""))),
            )
        elif self._by_name.pop(name, None) is None:
            return
        self.version += 1

    def granted(self, instance_id: bytes, client: ClientAttributes) -> Generator[None, None, Granted]:
        """Compute the metrics that a client is asked to push, in steps."""
        metrics: dict[str, None] = {}
        interval_ms = DEFAULT_INTERVAL_MS
        for count, subscription in enumerate(list(self._by_name.values()), 1):
            if is_match(subscription.patterns, client):
                metrics.update(dict.fromkeys(java_set_order(subscription.metrics)))
                interval_ms = min(interval_ms, subscription.interval_ms)
            if count % MATCHED_IN_A_STEP == 0:
                yield
        ordered = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(java_set_order(metrics))
        return Granted(subscription_id(ordered, interval_ms, instance_id), ordered, interval_ms)


def check_values(interval_ms: int | None, match: Iterable[str] | None) -> None:
    """Check the values that are set on a resource. KafkaError as Kafka's `ClientMetricsConfigs.validate`."""
    if interval_ms is not None and not _MIN_INTERVAL_MS <= interval_ms <= _MAX_INTERVAL_MS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)",
        )
    if match is not None:
        parse_match(match)


def subscription_id(metrics: Iterable[str], interval_ms: int, instance_id: bytes) -> int:
    """CRC-32C of the metrics and the interval, XORed with the hash of the client instance id; signed, 32 bits."""
    crc = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    halves = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    value = crc ^ (halves >> 32) ^ (halves & 0xFFFF_FFFF)
    return value - (1 << 32) if value >> 31 else value


def java_set_order(items: Iterable[str]) -> list[str]:
    """The order in which Java's HashSet, filled one by one, has distinct strings."""
    ordered = list(items)
    buckets = 16
    while len(ordered) > buckets * 3 // 4:
        buckets *= 2
    return sorted(ordered, key=lambda item: _spread_hash(item) & buckets - 1)


def _spread_hash(text: str) -> int:
    """Java's `HashMap.hash`, unsigned."""
    value = java_hash(text) & 0xFFFF_FFFF
    return value ^ value >> 16
