"""What `barnabas top` shows, as tables of texts: from the collector's figures and the counts of a control channel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.console.collector.figures import Figures
from barnabas.console.collector.views import OverviewView, group_rows, overview, topic_rows, transaction_rows
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


@dataclass(frozen=True)
class Row:
    """A row: a text and a value to sort by for each column, and the lines below it in a tree."""

    key: str
    texts: tuple[str, ...]
    values: tuple[object, ...]
    children: tuple[str, ...] = ()
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
        if row.leaderless:
            state, style = f"{row.leaderless} no leader", "bad"
        elif row.under_replicated:
            state, style = f"{row.under_replicated} behind", "warn"
        else:
            state, style = "ok", "quiet" if row.is_internal else ""
        texts = (printable(row.topic), str(row.partitions), amount(row.in_per_s), amount(row.out_per_s), state)
        lagging = sorted(readers.get(row.topic, ()), reverse=True)[:READERS]
        children = tuple(f"group {printable(group)}: lag {amount(lag)}" for lag, group in lagging)
        values = (row.topic, row.partitions, row.in_per_s or 0.0, row.out_per_s or 0.0, state)
        rows.append(Row(row.topic, texts, values, children, style))
    columns = (
        Column("TOPIC"), Column("PARTS", 6, True), Column("IN/S", 8, True), Column("OUT/S", 8, True),
        Column("STATE", 12),
    )  # fmt: skip
    return Table("Topics", columns, rows, 2, "no topics yet: 'barnabas topic create' makes one", "o")


def _groups(figures: Figures) -> Table:
    rows = []
    for row in group_rows(figures):
        lags = figures.groups[row.group].lags
        largest = sorted(lags.items(), key=lambda item: -item[1])[:CHILDREN]
        children = tuple(f"{topic}-{index}: lag {amount(lag)}" for (topic, index), lag in largest)
        style = "warn" if row.lag and row.state == "Empty" else ""
        texts = (printable(row.group), row.kind, row.state or "-", amount(row.lag), amount(row.read_per_s))
        values = (row.group, row.kind, row.state, -1 if row.lag is None else row.lag, row.read_per_s or 0.0)
        rows.append(Row(row.group, texts, values, children, style))
    columns = (
        Column("GROUP"), Column("KIND", 8), Column("STATE", 12), Column("LAG", 8, True), Column("READ/S", 8, True)
    )  # fmt: skip
    return Table("Groups", columns, rows, 3, "no groups: a consumer with a group.id makes one", "g")


def _clients(clients: ClientRates) -> Table:
    rows = []
    for name, (requests, errors, in_all, most) in clients.rates.items():
        texts = (printable(name) or "(no client id)", amount(requests), amount(errors), amount(in_all), most)
        rows.append(
            Row(name, texts, (name, requests or 0.0, errors or 0.0, in_all, most), (), "warn" if errors else "")
        )
    columns = (
        Column("CLIENT"), Column("REQ/S", 8, True), Column("ERR/S", 8, True), Column("REQUESTS", 9, True),
        Column("MOSTLY", 16),
    )  # fmt: skip
    return Table("Clients", columns, rows, 1, "no client has made a request", "c")


def _transactions(figures: Figures, now_s: float) -> Table:
    rows = []
    for row in transaction_rows(figures, now_s):
        children = tuple(
            f"{held.topic}-{held.partition}: holds back {amount(held.held)}"
            + (f" from {', '.join(map(printable, held.groups[:5]))}" if held.groups else "")
            for held in row.partitions[:CHILDREN]
        )
        age = "-" if row.age_s is None else duration(row.age_s)
        texts = (printable(row.transactional_id), row.state, age, amount(row.held), str(len(row.partitions)))
        values = (row.transactional_id, row.state, row.age_s or 0.0, row.held or 0, len(row.partitions))
        rows.append(Row(row.transactional_id, texts, values, children, "warn" if row.held else ""))
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
        children: tuple[str, ...] = (f"up {duration(row.uptime_s)}",) if row.uptime_s is not None else ()
        if row.failure:
            children += (row.failure,)
        rows.append(Row(str(row.broker), texts, values, children, "bad" if row.answers is False else ""))
    columns = (
        Column("BROKER"), Column("CPU", 5, True), Column("MEM", 5, True), Column("DISK", 5, True),
        Column("MSG/S", 7, True), Column("BYTE/S", 7, True), Column("LEADS", 6, True), Column("STATE", 10),
    )  # fmt: skip
    return Table("Brokers", columns, rows, 0, "no broker answers", "b")


def _warnings(view: OverviewView) -> Table:
    rows = [
        Row(
            f"{warning.kind} {warning.subject}",
            (printable(warning.sentence),),
            (number,),
            (printable(warning.sentence),),
            "bad" if warning.kind in ("unreachable", "no-leader") else "warn",
        )
        for number, warning in enumerate(view.warnings)
    ]
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
