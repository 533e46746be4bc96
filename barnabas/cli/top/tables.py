"""What `barnabas top` shows, as tables of texts: from the collector's figures and the counts of a control channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest

from barnabas.client.offsets import TopicPartition
from barnabas.console.collector.figures import Figures
from barnabas.console.collector.views import (
    GroupRow,
    OverviewView,
    TopicRow,
    group_rows,
    overview,
    topic_rows,
    transaction_rows,
)
from barnabas.console.collector.warnings import duration
from barnabas.terminal.tables import printable

CHILDREN = 50
"""Lines below one row of a tree."""
READERS = 20


@dataclass(frozen=True)
class Column:
    """A column; `width` 0 takes what the others leave."""

    title: str
    width: int = 0
    is_number: bool = False


def _no_lines() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row: a value to sort by for each column, and its texts, which are made when it is shown."""

    key: str
    values: tuple[object, ...]
    make_texts: Callable[[], tuple[str, ...]]
    make_lines: Callable[[], tuple[str, ...]] = _no_lines
    """The lines below it in a tree."""
    style: str = ""
    """warn, bad, quiet or nothing."""


@dataclass(frozen=True)
class Table:
    """A table. `sorted_by` is the column that it is sorted by at first, falling if that is a number."""

    name: str
    columns: tuple[Column, ...]
    rows: list[Row]
    sorted_by: int = 0
    empty: str = ""
    key: str = ""
    """The letter that opens it."""


@dataclass(frozen=True)
class Snapshot:
    """Everything at one moment."""

    at_s: float
    overview: OverviewView
    tables: list[Table]


@dataclass
class ClientRates:
    """Requests a second by client id, from the counts of a control channel."""

    _before: dict[str, tuple[int, int]] = field(default_factory=dict)
    _at_s: float = 0.0
    rates: dict[str, tuple[float | None, float | None, int, str]] = field(default_factory=dict)
    """Requests a second, errors a second, requests in all, and the API that was requested most."""

    def put(self, counted: Iterable[Mapping[str, object]], at_s: float) -> None:
        """Take the answer of the operation `clients`, made at `at_s` seconds."""
        counts: dict[str, tuple[int, int]] = {}
        rates: dict[str, tuple[float | None, float | None, int, str]] = {}
        seconds = at_s - self._at_s
        for client in counted:
            name, requests, errors = str(client["client_id"]), client["requests"], client["errors"]
            apis = client["apis"]
            assert isinstance(requests, int)
            assert isinstance(errors, int)
            assert isinstance(apis, dict)
            counts[name] = requests, errors
            most = max(apis, key=apis.__getitem__, default="")
            before = self._before.get(name)
            if before is None or seconds <= 0 or before[0] > requests:
                rates[name] = None, None, requests, most
            else:
                rates[name] = (requests - before[0]) / seconds, (errors - before[1]) / seconds, requests, most
        self._before, self._at_s, self.rates = counts, at_s, rates


def snapshot(figures: Figures, now_s: float, clients: ClientRates | None) -> Snapshot:
    """The tables now; `clients` is None without a control channel, and its table is left out."""
    view = overview(figures, now_s)
    tables = [_topics(figures), _groups(figures)]
    if clients is not None:
        tables.append(_clients(clients))
    tables += [_transactions(figures, now_s), _brokers(view), _warnings(view)]
    return Snapshot(now_s, view, tables)


def _topics(figures: Figures) -> Table:
    readers: dict[str, list[tuple[int, str]]] = {}
    for group in figures.groups.values():
        by_topic: dict[str, int] = {}
        for (topic, _), lag in group.lags.items():
            by_topic[topic] = by_topic.get(topic, 0) + lag
        for topic, lag in by_topic.items():
            readers.setdefault(topic, []).append((lag, group.group))
    rows = []
    for row in topic_rows(figures):
        style = "bad" if row.leaderless else "warn" if row.under_replicated else "quiet" if row.is_internal else ""
        values = (row.topic, row.partitions, row.in_per_s or 0.0, row.out_per_s or 0.0, _topic_state(row))
        lines = partial(_reader_lines, readers[row.topic]) if row.topic in readers else _no_lines
        rows.append(Row(row.topic, values, partial(_topic_texts, row), lines, style))
    columns = (
        Column("TOPIC"), Column("PARTS", 6, True), Column("IN/S", 8, True), Column("OUT/S", 8, True),
        Column("STATE", 12),
    )  # fmt: skip
    return Table("Topics", columns, rows, 2, "no topics yet: 'barnabas topic create' makes one", "o")


def _topic_texts(row: TopicRow) -> tuple[str, ...]:
    return printable(row.topic), str(row.partitions), amount(row.in_per_s), amount(row.out_per_s), _topic_state(row)


def _topic_state(row: TopicRow) -> str:
    if row.leaderless:
        return f"{row.leaderless} no leader"
    return f"{row.under_replicated} behind" if row.under_replicated else "ok"


def _reader_lines(readers: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(f"group {printable(group)}: lag {amount(lag)}" for lag, group in nlargest(READERS, readers))


def _groups(figures: Figures) -> Table:
    rows = []
    for row in group_rows(figures):
        style = "warn" if row.lag and row.state == "Empty" else ""
        values = (row.group, row.kind, row.state, -1 if row.lag is None else row.lag, row.read_per_s or 0.0)
        lines = partial(_lag_lines, figures.groups[row.group].lags)  # this dict is never changed, only replaced
        rows.append(Row(row.group, values, partial(_group_texts, row), lines, style))
    columns = (
        Column("GROUP"), Column("KIND", 8), Column("STATE", 12), Column("LAG", 8, True), Column("READ/S", 8, True)
    )  # fmt: skip
    return Table("Groups", columns, rows, 3, "no groups: a consumer with a group.id makes one", "g")


def _group_texts(row: GroupRow) -> tuple[str, ...]:
    return printable(row.group), row.kind, row.state or "-", amount(row.lag), amount(row.read_per_s)


def _lag_lines(lags: Mapping[TopicPartition, int]) -> tuple[str, ...]:
    largest = nlargest(CHILDREN, lags.items(), key=lambda item: item[1])
    return tuple(f"{topic}-{index}: lag {amount(lag)}" for (topic, index), lag in largest)


def _clients(clients: ClientRates) -> Table:
    rows = []
    for name, (requests, errors, in_all, most) in clients.rates.items():
        texts = (printable(name) or "(no client id)", amount(requests), amount(errors), amount(in_all), most)
        values = (name, requests or 0.0, errors or 0.0, in_all, most)
        rows.append(Row(name, values, partial(tuple, texts), style="warn" if errors else ""))
    columns = (
        Column("CLIENT"), Column("REQ/S", 8, True), Column("ERR/S", 8, True), Column("REQUESTS", 9, True),
        Column("MOSTLY", 16),
    )  # fmt: skip
    return Table("Clients", columns, rows, 1, "no client has made a request", "c")


def _transactions(figures: Figures, now_s: float) -> Table:
    rows = []
    for row in transaction_rows(figures, now_s):
        lines = tuple(
            f"{held.topic}-{held.partition}: holds back {amount(held.held)}"
            + (f" from {', '.join(map(printable, held.groups[:5]))}" if held.groups else "")
            for held in row.partitions[:CHILDREN]
        )
        age = "-" if row.age_s is None else duration(row.age_s)
        texts = (printable(row.transactional_id), row.state, age, amount(row.held), str(len(row.partitions)))
        values = (row.transactional_id, row.state, row.age_s or 0.0, row.held or 0, len(row.partitions))
        style = "warn" if row.held else ""
        rows.append(Row(row.transactional_id, values, partial(tuple, texts), partial(tuple, lines), style))
    columns = (
        Column("TRANSACTION"), Column("STATE", 13), Column("OPEN FOR", 12, True), Column("HOLDS", 8, True),
        Column("PARTS", 6, True),
    )  # fmt: skip
    return Table("Transactions", columns, rows, 2, "no transaction is open", "x")


def _brokers(view: OverviewView) -> Table:
    rows = []
    for row in view.brokers:
        state = "no answer" if row.answers is False else "controller" if row.is_controller else "ok"
        texts = (
            f"{row.broker} {row.host}:{row.port}",
            percent(row.cpu), percent(row.memory), percent(row.disk),
            amount(row.messages_per_s), amount(row.bytes_per_s), str(row.leaders), state,
        )  # fmt: skip
        values = (
            row.broker, row.cpu or 0.0, row.memory or 0.0, row.disk or 0.0,
            row.messages_per_s or 0.0, row.bytes_per_s or 0.0, row.leaders, state,
        )  # fmt: skip
        lines = [f"up {duration(row.uptime_s)}"] if row.uptime_s is not None else []
        if row.failure:
            lines.append(row.failure)
        style = "bad" if row.answers is False else ""
        rows.append(Row(str(row.broker), values, partial(tuple, texts), partial(tuple, lines), style))
    columns = (
        Column("BROKER"), Column("CPU", 5, True), Column("MEM", 5, True), Column("DISK", 5, True),
        Column("MSG/S", 7, True), Column("BYTE/S", 7, True), Column("LEADS", 6, True), Column("STATE", 10),
    )  # fmt: skip
    return Table("Brokers", columns, rows, 0, "no broker answers", "b")


def _warnings(view: OverviewView) -> Table:
    rows = []
    for number, warning in enumerate(view.warnings):
        texts = (printable(warning.sentence),)
        style = "bad" if warning.kind in ("unreachable", "no-leader") else "warn"
        key = f"{warning.kind} {warning.subject}"
        rows.append(Row(key, (number,), partial(tuple, texts), partial(tuple, texts), style))
    return Table("Warnings", (Column("WARNING"),), rows, 0, "nothing is wrong", "w")


def amount(number: float | None) -> str:
    """A number in at most six characters: 12, 3.4k, 5.6M; `-` for one that is not known."""
    if number is None:
        return "-"
    for unit in ("", "k", "M", "G", "T"):
        if abs(number) < 999.5 or unit == "T":
            return f"{number:.0f}{unit}" if unit == "" or abs(number) >= 99.5 else f"{number:.1f}{unit}"
        number /= 1000
    raise AssertionError


def percent(part: float | None) -> str:
    """A part of 1 in percent; `-` if it is not known."""
    return "-" if part is None else f"{part:.0%}"


def sorted_rows(rows: Sequence[Row], column: int, *, falling: bool) -> list[Row]:
    """Rows by the value of a column, and by their keys where it is the same."""
    by_key = sorted(rows, key=lambda row: row.key)
    return sorted(by_key, key=lambda row: row.values[column], reverse=falling)  # type: ignore[arg-type,return-value]
