"""Which partition of a coordinator's topic holds a key. Source: Kafka 4.4 `GroupCoordinatorService.partitionFor`."""

from __future__ import annotations

from barnabas.coord.short_key_cache import cached_if_short


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@cached_if_short(4096)
def coordinator_partition(key: str, partitions: int) -> int:
    """The partition that `key` belongs to (Kafka's `Utils.abs(key.hashCode()) % partitions`)."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
