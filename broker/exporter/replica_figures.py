"""What /metrics shows of topics and partitions, in steps of a few replicas.

As with Kafka's own metrics, each broker shows what it leads, and the size of each of its logs. The names of
kafka_exporter are shown for a partition by its leader only, so that a sum over all brokers counts it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.transactions import TRANSACTION_MAX_TIMEOUT_MS
from barnabas.broker.metrics.labels import OTHER
from barnabas.broker.replicas.leader.tally import Counts

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.exporter.page import Page
    from barnabas.broker.metrics.meter import Meter
    from barnabas.broker.replicas.partition import Partition

STEP: Final = 5
"""How many replicas a step looks at; each takes about 50 microseconds."""
LATE_MS: Final = 300_000
"""How long after the longest timeout an open transaction is late, as in Kafka."""


def replica_steps(page: Page, broker: Broker, meter: Meter) -> Iterator[None]:
    """Add the samples of all topics and partitions, and those of the whole broker that follow from them."""
    labels = meter.topic_labels
    totals = Counts()
    totals.add(meter.tallies.gone)
    figures: Counter[str] = Counter(dict.fromkeys(_SUMMED, 0))
    others = Counter(_of_counts(meter.gone_others))
    late_before = broker.loop.now_ms() - broker.config[TRANSACTION_MAX_TIMEOUT_MS] - LATE_MS
    for name in list(broker.image.topics):
        partitions = broker.partitions.of_topic(name)
        if not partitions:
            continue
        has_own, has_partitions = labels.admit(name, len(partitions))
        size = opened = led = 0
        counts = Counts()
        if (removed := meter.tallies.removed.get(partitions[0].topic_id)) is not None:
            counts.add(removed)
        for seen, partition in enumerate(partitions, 1):
            meter.tallies.add_counts(partition, counts)
            values = _values(partition, late_before)
            _add_partition(page, partition, values, has_own=has_own, has_partitions=has_partitions)
            size += values["size"]
            opened += values["open_transactions"]
            led += partition.is_leader
            for field in _SUMMED:
                figures[field] += values[field]
            if seen % STEP == 0:
                yield
        totals.add(counts)
        of_topic = {**_of_counts(counts), "size": size, "open_transactions": opened, "led": led}
        if has_own:
            page.add("topic", (name,), of_topic)
        else:
            for field, value in of_topic.items():
                others[field] += value
        yield
    if labels.hidden or any(others.values()):
        page.add("topic", (OTHER,), others)
    page.add_sums()
    page.add("broker", (), {**figures, **_of_counts(totals), "offline": len(broker.partitions.offline)})


_SUMMED: Final = ("under_replicated", "at_min_isr", "under_min_isr", "is_led", "is_replica", "is_late")


def _of_counts(counts: Counts) -> dict[str, int]:
    return {field: getattr(counts, field) for field in Counts.__slots__}


def _values(partition: Partition, late_before_ms: int) -> dict[str, int]:
    """The values of one replica."""
    log, leads = partition.log, partition.is_leader
    replicas, in_sync = len(partition.replicas), len(partition.isr)
    return {
        "size": log.segments.size_bytes,
        "segments": len(log.segments),
        "start": log.log_start_offset,
        "end": log.log_end_offset,
        "high_watermark": log.high_watermark,
        "stable_lag": log.high_watermark - log.last_stable_offset if leads else 0,
        "replicas": replicas if leads else 0,
        "in_sync": in_sync if leads else 0,
        "under_replicated": int(leads and in_sync < replicas),
        "at_min_isr": int(leads and in_sync == partition.min_in_sync),
        "under_min_isr": int(leads and in_sync < partition.min_in_sync),
        "leader": partition.leader_id,
        "is_preferred": int(bool(partition.replicas) and partition.replicas[0] == partition.leader_id),
        "open_transactions": log.producers.open_count if leads else 0,
        "is_late": int(leads and log.producers.has_late_transaction(late_before_ms)),
        "is_led": int(leads),
        "is_replica": 1,
    }


def _add_partition(
    page: Page, partition: Partition, values: dict[str, int], *, has_own: bool, has_partitions: bool
) -> None:
    sources = ("partition", "led partition") if partition.is_leader else ("partition",)
    for source in sources:
        if has_partitions:
            page.add(source, (partition.topic, str(partition.index)), values)
        else:
            page.add_to_sum(source, (partition.topic if has_own else OTHER, OTHER), values)
