"""The collector's figures as frozen values, for JSON, pages and `barnabas top`. Call with its lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from barnabas.console.collector.figures import BrokerFigures, Figures, GroupFigures, TransactionFigures
from barnabas.console.collector.rings import FINE_SLOTS, FINE_STEP_S, History, Point
from barnabas.console.collector.warnings import ClusterWarning, age_of, held_records, warnings

FINE_SPAN_S = float(FINE_STEP_S * FINE_SLOTS)


@dataclass(slots=True, frozen=True)
class SeriesView:
    """A series for a chart: times in seconds since 1970, and a value for each; None where nothing was sampled."""

    times: list[float] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class LineView:
    """A line of a chart."""

    label: str
    values: list[float | None]


@dataclass(slots=True, frozen=True)
class ChartView:
    """Lines over the same times, seconds since 1970."""

    times: list[float]
    lines: list[LineView]


@dataclass(slots=True, frozen=True)
class LiveView:
    """What a page that is open shows anew with every sample (`static/live.js`)."""

    charts: dict[str, ChartView]
    texts: dict[str, str] = field(default_factory=dict)
    """By the name in `data-text`."""
    rows: str = ""
    """Changes with the rows of the page's table: it is loaded again then. Empty if it stays as it is."""


@dataclass(slots=True, frozen=True)
class BrokerRow:
    """A broker; the figures of its load are None where it does not tell them (Apache Kafka)."""

    broker: int
    host: str
    port: int
    version: str
    """Such as `Barnabas 1.2, Kafka 4.4`, or `Kafka 3.9`: the release that it speaks like."""
    rack: str | None
    is_controller: bool
    answers: bool | None
    failure: str
    cpu: float | None
    memory: float | None
    memory_bytes: float | None
    disk: float | None
    bytes_per_s: float | None
    messages_per_s: float | None
    leaders: int
    uptime_s: float | None
    certificate_end_s: float | None


@dataclass(slots=True, frozen=True)
class TopicRow:
    """A topic with its rates; None until it was read twice."""

    topic: str
    partitions: int
    is_internal: bool
    in_per_s: float | None
    out_per_s: float | None
    under_replicated: int
    leaderless: int


@dataclass(slots=True, frozen=True)
class GroupRow:
    """A group with its lag; None where no partition has a known one."""

    group: str
    kind: str
    state: str
    protocol: str
    coordinator: int
    lag: int | None
    read_per_s: float | None
    partitions: int


@dataclass(slots=True, frozen=True)
class HeldRow:
    """A partition of an open transaction; `held` are the offsets that it holds back."""

    topic: str
    partition: int
    last_stable_offset: int | None
    high_watermark: int | None
    held: int | None
    groups: list[str]
    """The groups that read the topic."""


@dataclass(slots=True, frozen=True)
class TransactionRow:
    """An open transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    coordinator: int
    started_ms: int | None
    age_s: float | None
    timeout_ms: int
    held: int | None
    """The offsets that wait behind it; None if they are not known yet."""
    partitions: list[HeldRow]


@dataclass(slots=True, frozen=True)
class OverviewView:
    """The cluster at one glance."""

    cluster_id: str
    controller: int
    brokers: list[BrokerRow]
    topics: int
    partitions: int
    groups: int
    open_transactions: int
    in_per_s: float
    out_per_s: float
    lag: int
    messages_in: SeriesView
    messages_out: SeriesView
    bytes_in: SeriesView
    lag_series: SeriesView
    warnings: list[ClusterWarning]


def overview(figures: Figures, now_s: float, span_s: float = FINE_SPAN_S) -> OverviewView:
    """The overview, with series of the last `span_s` seconds."""
    return OverviewView(
        cluster_id=figures.cluster_id,
        controller=figures.controller,
        brokers=broker_rows(figures),
        topics=len(figures.topics),
        partitions=sum(len(topic.leaders) for topic in figures.topics.values()),
        groups=len(figures.groups),
        open_transactions=figures.transactions_in_all,
        in_per_s=sum(topic.in_per_s or 0.0 for topic in figures.topics.values()),
        out_per_s=sum(group.read_per_s or 0.0 for group in figures.groups.values()),
        lag=sum(group.lag or 0 for group in figures.groups.values()),
        messages_in=series(figures.messages_in, now_s, span_s),
        messages_out=series(figures.messages_out, now_s, span_s),
        bytes_in=series(figures.bytes_in, now_s, span_s),
        lag_series=series(figures.lag, now_s, span_s),
        warnings=warnings(figures, now_s),
    )


def series(history: History | None, now_s: float, span_s: float = FINE_SPAN_S) -> SeriesView:
    """The points of a series; none for one that has not begun."""
    points = _points(history, now_s, span_s)
    return SeriesView([at_s for at_s, _ in points], [value for _, value in points])


def _points(history: History | None, now_s: float, span_s: float) -> list[Point]:
    return [] if history is None else history.points(now_s, span_s)


def chart(lines: Mapping[str, History | None], now_s: float, span_s: float = FINE_SPAN_S) -> ChartView:
    """Several series over the same times, by label."""
    columns = {label: dict(_points(history, now_s, span_s)) for label, history in lines.items()}
    times = sorted({at_s for column in columns.values() for at_s in column})
    return ChartView(
        times, [LineView(label, [column.get(at_s) for at_s in times]) for label, column in columns.items()]
    )


def broker_rows(figures: Figures) -> list[BrokerRow]:
    """The brokers by id."""
    led: dict[int, int] = {}
    for topic in figures.topics.values():
        for leader in topic.leaders:
            led[leader] = led.get(leader, 0) + 1
    return [
        _broker(broker, led.get(number, 0), is_controller=number == figures.controller)
        for number, broker in sorted(figures.brokers.items())
    ]


def _broker(broker: BrokerFigures, leaders: int, *, is_controller: bool) -> BrokerRow:
    load = broker.load
    return BrokerRow(
        broker=broker.broker,
        host=broker.host,
        port=broker.port,
        version=broker.version,
        rack=broker.rack,
        is_controller=is_controller,
        answers=broker.answers,
        failure=broker.failure,
        cpu=None if load is None else load.cpu,
        memory=None if load is None else load.memory,
        memory_bytes=None if load is None else load.memory_bytes,
        disk=broker.disk_used,
        bytes_per_s=None if load is None else load.bytes_per_s,
        messages_per_s=None if load is None else load.messages_per_s,
        leaders=leaders,
        uptime_s=None if load is None else load.uptime_s,
        certificate_end_s=broker.certificate_end_s,
    )


def topic_rows(figures: Figures) -> list[TopicRow]:
    """All topics, by name."""
    return [
        TopicRow(
            topic=name,
            partitions=len(topic.leaders),
            is_internal=topic.is_internal,
            in_per_s=topic.in_per_s,
            out_per_s=topic.out_per_s,
            under_replicated=topic.under_replicated,
            leaderless=topic.leaderless,
        )
        for name, topic in sorted(figures.topics.items())
    ]


def group_rows(figures: Figures) -> list[GroupRow]:
    """All groups, by name."""
    return [_group(group) for _, group in sorted(figures.groups.items())]


def _group(group: GroupFigures) -> GroupRow:
    return GroupRow(
        group=group.group,
        kind=group.kind,
        state=group.state,
        protocol=group.protocol,
        coordinator=group.coordinator,
        lag=group.lag,
        read_per_s=group.read_per_s,
        partitions=len(group.offsets),
    )


def transaction_rows(figures: Figures, now_s: float) -> list[TransactionRow]:
    """The open transactions, the oldest first."""
    readers = _readers(figures)
    rows = [_transaction(transaction, now_s, readers) for transaction in figures.transactions]
    return sorted(rows, key=lambda row: -(row.age_s or 0.0))


def _readers(figures: Figures) -> Callable[[str], list[str]]:
    """Which groups have offsets in a topic, for the topics of open transactions."""
    topics = {held.topic for transaction in figures.transactions for held in transaction.partitions}
    by_topic: dict[str, list[str]] = {}
    if topics:
        for group in figures.groups.values():
            for topic in topics & {topic for topic, _ in group.offsets}:
                by_topic.setdefault(topic, []).append(group.group)
    return lambda topic: sorted(by_topic.get(topic, ()))


def _transaction(transaction: TransactionFigures, now_s: float, readers: Callable[[str], list[str]]) -> TransactionRow:
    return TransactionRow(
        transactional_id=transaction.transactional_id,
        state=transaction.state,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        coordinator=transaction.coordinator,
        started_ms=transaction.started_ms if transaction.started_ms >= 0 else None,
        age_s=age_of(transaction, now_s),
        timeout_ms=transaction.timeout_ms,
        held=held_records(transaction),
        partitions=[
            HeldRow(
                topic=held.topic,
                partition=held.partition,
                last_stable_offset=held.last_stable_offset,
                high_watermark=held.high_watermark,
                held=held.held,
                groups=readers(held.topic),
            )
            for held in transaction.partitions
        ],
    )
