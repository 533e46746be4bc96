"""Positions in partitions, such as the end, a time or an offset, and the offsets that they mean now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition, end_offsets, list_offsets, start_offsets


@dataclass(slots=True)
class OffsetSpec:
    """A position: kind is start, end, offset, last (the last `value` records) or time (`value` in ms)."""

    kind: str
    value: int = 0


def resolve_offset_specs(
    cluster: Cluster,
    specs: Mapping[TopicPartition, OffsetSpec],
    *,
    isolation_level: int = 0,
    on_moved: Callable[[TopicPartition, int, str], None] | None = None,
) -> dict[TopicPartition, int]:
    """The offset of each position, moved to the nearest end of its partition if it is outside.

    `on_moved(partition, offset, why)` is called for each offset or time that was outside: `beyond`, `before`, `late`.
    """
    partitions = list(specs)
    starts, ends = start_offsets(cluster, partitions), end_offsets(cluster, partitions, isolation_level)
    times = {partition: spec.value for partition, spec in specs.items() if spec.kind == "time"}
    by_time = list_offsets(cluster, times) if times else {}
    offsets: dict[TopicPartition, int] = {}
    for partition, spec in specs.items():
        start, end = starts[partition], ends[partition]
        at_time = by_time.get(partition, -1)
        offset = {
            "start": start,
            "end": end,
            "offset": spec.value,
            "last": end - spec.value,
            "time": end if at_time < 0 else at_time,
        }[spec.kind]
        offsets[partition] = min(max(offset, start), end)
        if on_moved is None:
            continue
        if spec.kind == "offset" and offsets[partition] != offset:
            on_moved(partition, offsets[partition], "beyond" if offset > end else "before")
        elif spec.kind == "time" and at_time < 0:
            on_moved(partition, end, "late")
    return offsets
