"""Transactions and producers: what is open and whom it holds back, what hangs, abort; the producers of a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import time, time_ns
from typing import Annotated, Literal
from urllib.parse import quote
from zlib import crc32

import msgspec

from barnabas.client.admin.topics import list_topics
from barnabas.client.admin.transactions import (
    ListedTransaction,
    abort_in_partition,
    describe_producers,
    describe_transaction,
    fence_producer,
    hanging_producer,
    hanging_transactions,
    list_transactions,
)
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition, end_offsets, stable_offsets
from barnabas.console.collector.figures import Figures
from barnabas.console.collector.rounds import MAX_TRANSACTIONS, OPEN_STATES
from barnabas.console.collector.views import HeldRow, LiveView, TransactionRow, transaction_rows
from barnabas.console.console import Call
from barnabas.console.events import Event
from barnabas.console.pages import duration
from barnabas.console.resources import Done, action, resource, stream
from barnabas.console.screens.figures import samples
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.console.values import BadInput

PRODUCER_PARTITIONS = 1_000
"""Partitions of a topic whose producers are asked for."""
HANGING_PARTITIONS = 2_000
"""Partitions that are searched for hanging transactions at once."""
MAX_TIMEOUT_S = 900
"""The default of the brokers' transaction.max.timeout.ms."""
State = Literal[
    "", "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence"
]


@dataclass(frozen=True)
class IdRow:
    """A transactional id, as its coordinator lists it."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


@dataclass(frozen=True, kw_only=True)
class TransactionsQuery(TableQuery):
    """Which transactional ids are shown."""

    state: State = ""
    """Only those in this state."""


@dataclass(frozen=True)
class TransactionsView:
    """The open transactions, and all transactional ids."""

    open: list[TransactionRow]
    """The oldest first."""
    open_in_all: int
    ids: Page[IdRow]
    version: str
    """Changes with what is open."""


@resource("/transactions", template="transactions/list.html", summary="Open transactions, and all transactional ids.")
def list_of_transactions(cluster: Cluster, call: Call, query: TransactionsQuery) -> TransactionsView:
    """What is open comes from the collector, with the offsets that it holds back."""
    sampled = call.collector.read(transaction_rows)
    listed = list_transactions(cluster)
    open_ids = {each.transactional_id: each for each in listed if each.state in OPEN_STATES}
    rows = [row for row in sampled if row.transactional_id in open_ids]
    known = {row.transactional_id for row in rows}
    rows += [_not_sampled(each) for name, each in list(open_ids.items())[:MAX_TRANSACTIONS] if name not in known]
    ids = [
        IdRow(each.transactional_id, each.state, each.producer_id, each.coordinator)
        for each in listed
        if not query.state or each.state == query.state
    ]
    columns = ("transactional_id", "state", "producer_id", "coordinator")
    page = paged(ids, query, columns=columns, search=lambda row: row.transactional_id, sort="transactional_id")
    return TransactionsView(rows, len(open_ids), page, _version(sampled))


def _not_sampled(listed: ListedTransaction) -> TransactionRow:
    """A transaction that began after the collector's last sample: its partitions come with the next one."""
    return TransactionRow(
        transactional_id=listed.transactional_id,
        state=listed.state,
        producer_id=listed.producer_id,
        producer_epoch=-1,
        coordinator=listed.coordinator,
        started_ms=None,
        age_s=None,
        timeout_ms=-1,
        held=None,
        partitions=[],
    )


def _version(rows: Sequence[TransactionRow]) -> str:
    shown = [(row.transactional_id, row.state, row.held, len(row.partitions)) for row in rows]
    return f"{crc32(repr(shown).encode()):x}"


@stream("/transactions/events", summary="How long the open transactions are open, with every sample.")
def transactions_events(call: Call) -> Iterator[Event | None]:
    """Texts `age ID`; `rows` changes with what is open and what it holds back."""
    return samples(call, _live)


def _live(figures: Figures, now_s: float) -> LiveView:
    rows = transaction_rows(figures, now_s)
    return LiveView({}, {f"age {row.transactional_id}": duration(row.age_s) for row in rows}, _version(rows))


@dataclass(frozen=True)
class TransactionQuery:
    """Which transactional id."""

    transactional_id: str


@resource("/transactions/{transactional_id}", template="transactions/transaction.html", summary="One transactional id.")
def one_transaction(cluster: Cluster, call: Call, query: TransactionQuery) -> TransactionRow:
    """Its state and partitions, with the offsets that an open transaction holds back, asked for now."""
    coordinator, state = describe_transaction(cluster, query.transactional_id)
    partitions = [(topic.topic, index) for topic in state.topics for index in sorted(topic.partitions)]
    is_open = state.transaction_state in OPEN_STATES
    held = _held(cluster, call, partitions) if is_open else []
    started = state.transaction_start_time_ms
    return TransactionRow(
        transactional_id=state.transactional_id,
        state=state.transaction_state,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator=coordinator,
        started_ms=started if started >= 0 else None,
        age_s=max(0.0, time() - started / 1000) if started >= 0 and is_open else None,
        timeout_ms=state.transaction_timeout_ms,
        held=sum(row.held or 0 for row in held),
        partitions=held,
    )


def _held(cluster: Cluster, call: Call, partitions: Sequence[TopicPartition]) -> list[HeldRow]:
    stable, ends = stable_offsets(cluster, list(partitions)), end_offsets(cluster, list(partitions))

    def readers(figures: Figures, _now_s: float) -> dict[str, list[str]]:
        topics = {topic for topic, _ in partitions}
        by_topic: dict[str, list[str]] = {}
        for name, group in sorted(figures.groups.items()):
            for topic in topics & {topic for topic, _ in group.offsets}:
                by_topic.setdefault(topic, []).append(name)
        return by_topic

    groups = call.collector.read(readers)
    return [
        HeldRow(*which, stable[which], ends[which], max(0, ends[which] - stable[which]), groups.get(which[0], []))
        for which in partitions
    ]


@dataclass(frozen=True)
class Abort:
    """The transactional id whose transaction is aborted."""

    transactional_id: str


@action(
    "/transactions/{transactional_id}/abort", summary="Abort the open transaction of an id, and fence its producer."
)
def abort(cluster: Cluster, form: Abort) -> Done:
    """As `barnabas txn abort` does; returns when it is aborted."""
    _, state = describe_transaction(cluster, form.transactional_id)
    fence_producer(cluster, form.transactional_id)
    if state.transaction_state == "Ongoing":
        text = f"The transaction of {form.transactional_id} was aborted and its producer is fenced."
    else:
        text = f"There was no open transaction of {form.transactional_id}; its producer is fenced."
    return Done(text, f"/transactions/{quote(form.transactional_id, safe='')}")


# --- hanging transactions


@dataclass(frozen=True)
class HangingQuery:
    """Where hanging transactions are searched."""

    topic: str = ""
    """Empty: in all topics."""
    idle_s: Annotated[int, msgspec.Meta(ge=0)] = MAX_TIMEOUT_S
    """Only transactions without a record for so long: the brokers' transaction.max.timeout.ms."""
    search: bool = False
    """False: nothing is asked yet."""


@dataclass(frozen=True)
class HangingRow:
    """A transaction that a partition has open and its coordinator does not know."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    start_offset: int
    last_ms: int
    transactional_id: str | None


@dataclass(frozen=True)
class HangingView:
    """The result of a search."""

    partitions: int | None
    """How many partitions were searched; None if none was."""
    hanging: list[HangingRow]


@resource("/hanging", template="transactions/hanging.html", summary="Transactions that hang in partitions (KIP-664).")
def hanging(cluster: Cluster, query: HangingQuery) -> HangingView:
    """They hold back readers with read_committed for ever, until they are aborted here."""
    if not query.search:
        return HangingView(None, [])
    partitions = [
        (topic.name or "", part.partition_index)
        for topic in list_topics(cluster)
        if not query.topic or topic.name == query.topic
        for part in topic.partitions
        if part.leader_id >= 0
    ]
    if query.topic and not partitions:
        cluster.find_topic(query.topic)  # says that there is none
    if len(partitions) > HANGING_PARTITIONS:
        raise BadInput(
            f"topic: there are {len(partitions)} partitions, more than {HANGING_PARTITIONS}: name a topic, "
            "or use 'barnabas txn find-hanging'"
        )
    transactions = hanging_transactions(cluster, partitions, idle_since_ms=time_ns() // 1_000_000 - query.idle_s * 1000)
    rows = [
        HangingRow(
            each.topic,
            each.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.current_txn_start_offset,
            each.producer.last_timestamp,
            each.transactional_id,
        )
        for each in transactions
    ]
    return HangingView(len(partitions), rows)


@dataclass(frozen=True)
class AbortHanging:
    """The partition and the offset at which the hanging transaction began."""

    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0)]
    start_offset: Annotated[int, msgspec.Meta(ge=0)]


@action("/hanging/abort", summary="Abort a transaction that hangs in a partition.")
def abort_hanging(cluster: Cluster, form: AbortHanging) -> Done:
    """Refused for a transaction that its coordinator knows."""
    producer = hanging_producer(cluster, (form.topic, form.partition), form.start_offset)
    abort_in_partition(cluster, form.topic, form.partition, producer)
    text = f"The transaction of producer {producer.producer_id} in {form.topic}-{form.partition} was aborted."
    return Done(text, "/hanging?search=true")


# --- producers


@dataclass(frozen=True, kw_only=True)
class ProducersQuery(TableQuery):
    """Which topic."""

    topic: str


@dataclass(frozen=True)
class ProducerRow:
    """An idempotent or transactional producer of a partition, as its leader knows it."""

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int | None
    last_ms: int
    coordinator_epoch: int | None
    open_since: int | None
    """The offset at which its open transaction began; None without one."""


@dataclass(frozen=True)
class ProducersView:
    """The producers of a topic."""

    topic: str
    producers: Page[ProducerRow]
    partitions: int
    asked: int
    """The partitions that were asked for: not more than 1,000."""


@resource(
    "/topics/{topic}/producers",
    template="transactions/producers.html",
    summary="The idempotent and transactional producers of a topic.",
)
def producers(cluster: Cluster, query: ProducersQuery) -> ProducersView:
    """Of partitions that have a leader."""
    leaders = cluster.find_topic(query.topic).leaders
    led = [(query.topic, index) for index, leader in enumerate(leaders) if leader >= 0][:PRODUCER_PARTITIONS]
    rows = [
        ProducerRow(
            index,
            state.producer_id,
            state.producer_epoch,
            state.last_sequence if state.last_sequence >= 0 else None,
            state.last_timestamp,
            state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
            state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
        )
        for (_, index), states in sorted(describe_producers(cluster, led).items())
        for state in states
    ]
    columns = ("partition", "producer_id", "epoch", "last_sequence", "last_ms", "coordinator_epoch", "open_since")
    page = paged(rows, query, columns=columns, search=lambda row: str(row.producer_id))
    return ProducersView(query.topic, page, len(leaders), len(led))
