"""What /metrics shows of groups: members, committed offsets and lag, of the groups that this broker coordinates.

The end of a partition that another broker leads is asked for, with those of all groups together; a partition whose
leader does not answer within `ENDS_S` has no lag in this scrape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import trio

from barnabas.broker.metrics.labels import OTHER, PARTS_OF_A_NAME
from barnabas.coord.groups.committed_offset import decoded
from barnabas.coord.transactions.states import TransactionState
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.exporter.page import Page
    from barnabas.broker.metrics.labels import Labels
    from barnabas.broker.replicas.partition import Partition

STEP: Final = 20
"""How many committed offsets a step looks at; each takes about 15 microseconds."""
ENDS_S: Final = 2.0
"""How long other brokers have to tell the ends of partitions, seconds."""

Ends = dict[tuple[str, int], int]
"""High watermarks of partitions that other brokers lead."""


def remote_steps(broker: Broker, most: int) -> Iterator[tuple[str, int] | None]:
    """The partitions with committed offsets that other brokers lead, at most `most`; None between the steps."""
    seen: set[tuple[str, int]] = set()
    looked_at = 0
    for coordinator in list(broker.group_coordinators):
        for group_id in list(coordinator.groups):
            for topic, offsets in list(coordinator.offsets.store.of_group(group_id).items()):
                for index in list(offsets):
                    looked_at += 1
                    if looked_at % STEP == 0:
                        yield None
                    if (topic, index) in seen or _led(broker, topic, index) is not None:
                        continue
                    if len(seen) >= most:
                        return
                    seen.add((topic, index))
                    yield topic, index
            yield None


async def ask_ends(broker: Broker, partitions: list[tuple[str, int]]) -> Ends:
    """The high watermarks of partitions, from their leaders."""
    ends: Ends = {}
    missing = len(partitions)
    all_there = trio.Event()

    def take(key: tuple[str, int], outcome: int | KafkaError) -> None:
        nonlocal missing
        missing -= 1
        if not isinstance(outcome, KafkaError):
            ends[key] = outcome
        if not missing:
            all_there.set()

    for key in partitions:
        image = broker.image.partition(*key)
        if image is None or image.leader < 0 or image.leader == broker.node_id:
            missing -= 1
        else:
            broker.latest_offsets.ask(image.leader, *key, lambda outcome, key=key: take(key, outcome))  # type: ignore[misc]
    if missing:
        with trio.move_on_after(ENDS_S):
            await all_there.wait()
    return ends


def most_remote(most_labels: int) -> int:
    """How many partitions other brokers are asked for in a scrape."""
    return most_labels * PARTS_OF_A_NAME


class _Totals:
    """Of all groups."""

    def __init__(self) -> None:
        self.offsets = 0
        self.lag = 0
        self.looked_at = 0


def group_steps(page: Page, broker: Broker, labels: Labels, ends: Ends) -> Iterator[None]:
    """Add the samples of all groups."""
    states: Counter[tuple[str, str]] = Counter()
    existing: set[str] = set()
    totals = _Totals()
    for coordinator in list(broker.group_coordinators):
        for group_id in list(coordinator.groups):
            group = coordinator.groups.get(group_id)
            if group is None:
                continue  # deleted meanwhile
            existing.add(group_id)
            states[group.group_type, str(group.state)] += 1
            committed = coordinator.offsets.store.of_group(group_id)
            has_own, has_partitions = labels.admit(group_id, sum(map(len, list(committed.values()))))
            label = group_id if has_own else OTHER
            members = {"members": len(group.members)}  # type: ignore[attr-defined]  # of all types
            (page.add if has_own else page.add_to_sum)("group", (label,), members)
            for topic, offsets in list(committed.items()):
                shown = topic if has_partitions else OTHER
                yield from _topic_steps(page, broker, (label, topic, shown), offsets, ends, totals)
            yield
    yield from labels.keep_only(existing)
    yield
    page.add_sums()
    for (group_type, state), number in states.items():
        page.add("group state", (group_type, state), {"groups": number})
    page.add("broker", (), {"groups": len(existing), "offsets": totals.offsets, "lag": totals.lag})


def _topic_steps(
    page: Page,
    broker: Broker,
    names: tuple[str, str, str],
    offsets: Mapping[int, bytes],
    ends: Ends,
    totals: _Totals,
) -> Iterator[None]:
    """Add the samples of a group in a topic: `names` are the group's label, the topic, and the topic's label."""
    label, topic, shown = names
    of_topic = {"offset": 0}
    for index, value in list(offsets.items()):
        totals.looked_at += 1
        if totals.looked_at % STEP == 0:
            yield
        values = _lag(broker, topic, index, decoded(value).offset, ends)
        totals.offsets += 1
        of_topic["offset"] += values["offset"]
        if "lag" in values:
            of_topic["lag"] = of_topic.get("lag", 0) + values["lag"]
            totals.lag += values["lag"]
        if shown is OTHER:
            page.add_to_sum("group and partition", (label, OTHER, OTHER), values)
        else:
            page.add("group and partition", (label, topic, str(index)), values)
    (page.add_to_sum if shown is OTHER else page.add)("group and topic", (label, shown), of_topic)


def _led(broker: Broker, topic: str, index: int) -> Partition | None:
    """A partition that this broker leads."""
    partition = broker.partitions.find(topic, index)
    return partition if partition is not None and partition.is_leader else None


def _lag(broker: Broker, topic: str, index: int, offset: int, ends: Ends) -> dict[str, int]:
    """The committed offset in a partition, and the lag if its end is known."""
    partition = _led(broker, topic, index)
    end = ends.get((topic, index)) if partition is None else partition.log.high_watermark
    return {"offset": offset} if end is None else {"offset": offset, "lag": max(0, end - offset)}


def transaction_steps(page: Page, broker: Broker) -> Iterator[None]:
    """Add the samples of transactions."""
    now_ms = broker.loop.now_ms()
    opened = late = 0
    for coordinator in list(broker.transaction_coordinators):
        for number, transaction in enumerate(list(coordinator.transactions.values())):
            if transaction.state is TransactionState.ONGOING:
                opened += 1
                late += transaction.start_ms + transaction.timeout_ms < now_ms
            if number % 500 == 0:
                yield
    page.add("broker", (), {"open_transactions": opened, "late_transactions": late})
