"""The screen of `barnabas top` as lines, and what keys do to it. Pure: no terminal and no clock.

Above are the brokers' loads, the cluster's rates and the tabs; below is a table, or on the first tab several.
A selected row is marked by `>`, and every state has a word, so that nothing depends on colour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from barnabas.cli.top.tables import Column, Row, Snapshot, Table, amount, percent, sorted_rows
from barnabas.console.collector.views import BrokerRow, SeriesView
from barnabas.console.collector.warnings import duration
from barnabas.terminal.layout import cell_width, wrap

ALL = "All"
HEADER_BROKERS = 4
"""Brokers whose loads are shown above; all are in their table."""
WIDE = 150
"""From this width on the first tab has two tables beside each other."""
_BARS = "▁▂▃▄▅▆▇█"
_CODES = {
    "": "", "title": "\x1b[1m", "head": "\x1b[7m", "quiet": "\x1b[2m", "good": "\x1b[32m", "warn": "\x1b[33m",
    "bad": "\x1b[31m", "chosen": "\x1b[7m", "key": "\x1b[1m", "label": "\x1b[7m",
}  # fmt: skip
HELP = (
    "Tab, 1 … 7           next table; a table by its place",
    "o, g, c, x           topics, groups, clients, transactions",
    "b, w, a              brokers, warnings, all together",
    "Up, Down, j, k       select a row; PgUp, PgDn, Home, End go further",
    "F6, s, <, >          sort by the next column; < and > go back and on",
    "I                    turn the order round",
    "F4, \\                filter: only rows with a text; Esc ends it",
    "F3, /                search: go to the next row with a text; n goes on",
    "F5, t                tree: partitions, groups, addresses below each row",
    "Enter                the same for one row",
    "p                    pause and go on",
    "F1, h, ?             this list",
    "F10, q, Ctrl-C       quit",
    "",
    "IN/S and OUT/S are messages a second, written and read by groups.",
    "LAG is what a group has not read; HOLDS what a transaction keeps from readers.",
    "Clients are there with --control-file or --control: only our broker tells them.",
)


@dataclass
class State:
    """What the user has chosen."""

    has_colour: bool = True
    is_unicode: bool = True
    tab: str = ALL
    selected: dict[str, str] = field(default_factory=dict)
    """By table the key of its selected row."""
    sort: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """By table the column, and whether it falls."""
    filters: dict[str, str] = field(default_factory=dict)
    search: str = ""
    typing: str = ""
    """filter or search, while one is typed; else empty."""
    is_tree: bool = False
    open_rows: set[tuple[str, str]] = field(default_factory=set)
    is_paused: bool = False
    shows_help: bool = False
    is_done: bool = False
    page: int = 10
    """Rows of the table in the last frame, for PgUp and PgDn."""


# --- keys


def press(state: State, key: str, shown: Snapshot | None) -> None:
    """Do what a key says."""
    if state.typing:
        _type(state, key, shown)
    elif state.shows_help:
        state.shows_help = False
        state.is_done = key in ("q", "f10")
    elif shown is not None and (table := _by_letter(shown, key)) is not None:
        state.tab = table.name
    else:
        action = _ACTIONS.get(key)
        if action is not None:
            action(state, key, shown)


def _by_letter(shown: Snapshot, key: str) -> Table | None:
    return next((table for table in shown.tables if table.key == key), None)


def _type(state: State, key: str, shown: Snapshot | None) -> None:
    kind = state.typing
    text = state.search if kind == "search" else state.filters.get(state.tab, "")
    if key in ("enter", "escape", "f3", "f4"):
        state.typing = ""
        text = "" if key == "escape" else text
    elif key == "backspace":
        text = text[:-1]
    elif key == "clear":
        text = ""
    elif len(key) == 1 and key.isprintable():
        text += key
    if kind == "search":
        state.search = text
        if text and state.typing:
            _find(state, shown, step=0)
    else:
        state.filters[state.tab] = text


def _quit(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001 - all have one form
    state.is_done = True


def _help(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    state.shows_help = True


def _pause(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    state.is_paused = not state.is_paused


def _tree(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    state.is_tree = not state.is_tree
    state.open_rows.clear()


def _open_row(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    if state.tab in state.selected:
        state.open_rows ^= {(state.tab, state.selected[state.tab])}


def _all(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    state.tab = ALL


def _next_tab(state: State, key: str, shown: Snapshot | None) -> None:
    names = _tabs(shown)
    at = names.index(state.tab) if state.tab in names else 0
    state.tab = names[(at + (-1 if key in ("back-tab", "left") else 1)) % len(names)]


def _numbered_tab(state: State, key: str, shown: Snapshot | None) -> None:
    names = _tabs(shown)
    if int(key) <= len(names):
        state.tab = names[int(key) - 1]


def _tabs(shown: Snapshot | None) -> list[str]:
    return [ALL, *(table.name for table in shown.tables)] if shown is not None else [ALL]


def _begin_typing(state: State, key: str, shown: Snapshot | None) -> None:
    if state.tab == ALL:
        _next_tab(state, "tab", shown)
    state.typing = "search" if key in ("f3", "/") else "filter"
    if state.typing == "search":
        state.search = ""


def _escape(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    state.filters.pop(state.tab, None)
    state.search = ""


def _sort(state: State, key: str, shown: Snapshot | None) -> None:
    table = _current(state, shown)
    if table is None:
        return
    column, _ = _order(state, table)
    column = (column + (-1 if key == "<" else 1)) % len(table.columns)
    state.sort[table.name] = column, table.columns[column].is_number


def _invert(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    table = _current(state, shown)
    if table is not None:
        column, falling = _order(state, table)
        state.sort[table.name] = column, not falling


def _move(state: State, key: str, shown: Snapshot | None) -> None:
    table = _current(state, shown)
    if table is None:
        return
    rows = _rows(state, table)
    if not rows:
        return
    at = _selected_at(state, table, rows)
    steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -state.page, "page-down": state.page}
    to = {"home": 0, "end": len(rows) - 1}.get(key, at + steps.get(key, 0))
    state.selected[table.name] = rows[min(max(to, 0), len(rows) - 1)].key


def _find_next(state: State, key: str, shown: Snapshot | None) -> None:  # noqa: ARG001
    _find(state, shown, step=1)


def _find(state: State, shown: Snapshot | None, step: int) -> None:
    """Select the next row with the searched text, from the selected one on."""
    table = _current(state, shown)
    if table is None or not state.search:
        return
    rows = _rows(state, table)
    at = _selected_at(state, table, rows) + step
    for row in [*rows[at:], *rows[:at]]:
        if _has(row, state.search):
            state.selected[table.name] = row.key
            return


_ACTIONS: dict[str, Callable[[State, str, Snapshot | None], None]] = {
    **dict.fromkeys(("q", "f10"), _quit),
    **dict.fromkeys(("f1", "h", "?"), _help),
    **dict.fromkeys(("tab", "back-tab", "left", "right"), _next_tab),
    **dict.fromkeys("123456789", _numbered_tab),
    **dict.fromkeys(("f3", "/", "f4", "\\"), _begin_typing),
    **dict.fromkeys(("f5", "t"), _tree),
    **dict.fromkeys(("f6", "s", "<", ">"), _sort),
    **dict.fromkeys(("up", "down", "j", "k", "page-up", "page-down", "home", "end"), _move),
    "I": _invert,
    "n": _find_next,
    "p": _pause,
    "a": _all,
    "enter": _open_row,
    "escape": _escape,
}


# --- the rows of a table


def _current(state: State, shown: Snapshot | None) -> Table | None:
    return None if shown is None else next((table for table in shown.tables if table.name == state.tab), None)


def _order(state: State, table: Table) -> tuple[int, bool]:
    return state.sort.get(table.name, (table.sorted_by, table.columns[table.sorted_by].is_number))


def _rows(state: State, table: Table) -> list[Row]:
    text = state.filters.get(table.name, "")
    chosen = [row for row in table.rows if _has(row, text)] if text else table.rows
    column, falling = _order(state, table)
    return sorted_rows(chosen, column, falling=falling)


def _has(row: Row, text: str) -> bool:
    return any(text.casefold() in cell.casefold() for cell in row.make_texts())


def _selected_at(state: State, table: Table, rows: Sequence[Row]) -> int:
    key = state.selected.get(table.name)
    return next((number for number, row in enumerate(rows) if row.key == key), 0)


# --- drawing


def draw(state: State, shown: Snapshot | None, columns: int, lines: int, failure: str = "") -> list[str]:
    """The lines of the screen, not wider than `columns`, with escape sequences if it has colour."""
    paint = Painter(state, columns)
    if state.shows_help:
        return [paint.line("title", "barnabas top"), "", *(paint.line("", text) for text in HELP)][:lines]
    if shown is None:
        text = failure or "asking the cluster …"
        return [paint.line("title", "barnabas top"), "", *(paint.line("", part) for part in wrap(text, columns))]
    head = _head(paint, shown, failure)
    room = max(1, lines - len(head) - 1)
    table = _current(state, shown)
    body = _all_tables(paint, shown, room) if table is None else _one_table(paint, table, room)
    return [*head, *body[:room], *[""] * (room - len(body)), _foot(paint)][: max(lines, 1)]


class Painter:
    """Makes texts fit, and paints them."""

    def __init__(self, state: State, columns: int) -> None:
        self.state = state
        self.columns = columns

    def fit(self, text: str, width: int, *, is_number: bool = False) -> str:
        """The text in exactly so many columns; what does not fit is cut, with a sign."""
        size = cell_width(text)
        if size > width:
            end = "…" if self.state.is_unicode else "~"
            while text and cell_width(text) > max(0, width - 1):
                text = text[: max(0, min(len(text) - 1, width - 1))]
            text, size = text + end[: width > 0], cell_width(text) + (width > 0)
        space = " " * (width - size)
        return space + text if is_number else text + space

    def paint(self, style: str, text: str) -> str:
        """The text in a style, if there is colour."""
        code = _CODES[style] if self.state.has_colour else ""
        return f"{code}{text}\x1b[0m" if code and text else text

    def line(self, style: str, text: str, width: int | None = None) -> str:
        """A line of one style."""
        width = self.columns if width is None else width
        return self.paint(
            style, self.fit(text, width).rstrip() if style not in ("head", "chosen") else self.fit(text, width)
        )


def _head(paint: Painter, shown: Snapshot, failure: str) -> list[str]:
    view = shown.overview
    time = datetime.fromtimestamp(shown.at_s, UTC).strftime("%H:%M:%S UTC")
    paused = " · paused (p goes on)" if paint.state.is_paused else ""
    dot = "·" if paint.state.is_unicode else "-"
    first = f"barnabas top {dot} cluster {view.cluster_id} {dot} {time}{paused.replace('·', dot)}"
    lines = [paint.line("bad", f"{failure}; figures of {time}") if failure else paint.line("title", first)]
    lines += [_broker_line(paint, broker) for broker in view.brokers[:HEADER_BROKERS]]
    if len(view.brokers) > HEADER_BROKERS:
        lines.append(paint.line("quiet", f"{len(view.brokers) - HEADER_BROKERS} more brokers: b shows all"))
    lines.append(paint.line("", _rates(paint, shown)))
    counts = (
        f"Topics {view.topics:,} ({view.partitions:,} partitions)  Groups {view.groups:,}  "
        f"Open transactions {view.open_transactions:,}  Warnings {len(view.warnings):,}"
    )
    lines.append(paint.line("", counts))
    if view.warnings:
        lines.append(paint.line("warn", f"! {view.warnings[0].sentence}"))
    lines.append(_tab_line(paint, shown))
    return lines


def _broker_line(paint: Painter, broker: BrokerRow) -> str:
    name = f"{broker.broker:>3} "
    if broker.answers is False:
        return paint.line("bad", f"{name}does not answer: {broker.failure}")
    if broker.cpu is None:
        disk = "" if broker.disk is None else f"  Disk {percent(broker.disk)}"
        return paint.line("", f"{name}{broker.host}:{broker.port}  leads {broker.leaders:,}{disk}")
    width = max(4, min(24, (paint.columns - 40) // 3 - 6))
    meters = "".join(
        f"{title}[{_meter(part, width)}] "
        for title, part in (("CPU", broker.cpu), ("Mem", broker.memory), ("Dsk", broker.disk))
    )
    up = f" up {duration(broker.uptime_s)}" if broker.uptime_s is not None else ""
    rates = f"{amount(broker.messages_per_s)} msg/s {amount(broker.bytes_per_s)}B/s"
    return paint.line("", f"{name}{meters}{rates}{up}")


def _meter(part: float | None, width: int) -> str:
    """`||||     12%`, as htop draws it."""
    if part is None:
        return " " * width
    text = f"{part:.0%}"
    bars = "|" * min(width, round(part * width))
    return f"{bars[: width - len(text)]:<{width - len(text)}}{text}"


def _rates(paint: Painter, shown: Snapshot) -> str:
    view = shown.overview
    room = max(0, min(30, (paint.columns - 44) // 3))
    parts = (
        ("In", f"{amount(view.in_per_s)}/s", view.messages_in),
        ("Out", f"{amount(view.out_per_s)}/s", view.messages_out),
        ("Lag", amount(view.lag), view.lag_series),
    )
    return "   ".join(f"{title} {text:<7}{_sparkline(paint, series, room)}" for title, text, series in parts)


def _sparkline(paint: Painter, series: SeriesView, width: int) -> str:
    values = [value for value in series.values[-width:] if value is not None] if width else []
    if not values or not paint.state.is_unicode:
        return ""
    top = max(values) or 1.0
    return "".join(_BARS[min(7, round(value / top * 7))] for value in values)


def _tab_line(paint: Painter, shown: Snapshot) -> str:
    texts = []
    room = paint.columns
    for number, name in enumerate(_tabs(shown), 1):
        text = f" {number} {name} " if name != paint.state.tab else f"[{number} {name}]"
        if len(text) > room:
            break
        room -= len(text)
        texts.append(paint.paint("head", text) if name == paint.state.tab else text)
    return "".join(texts)


def _foot(paint: Painter) -> str:
    state = paint.state
    if state.typing:
        text = state.search if state.typing == "search" else state.filters.get(state.tab, "")
        return paint.line("head", f"{state.typing}: {text}_   Enter keeps it, Esc ends it")
    labels = (("F1", "Help"), ("F3", "Search"), ("F4", "Filter"), ("F5", "Tree"), ("F6", "Sort"), ("F10", "Quit"))
    texts, room = [], paint.columns
    for key, label in (*labels[:5], ("p", "Pause"), ("Tab", "Next"), labels[5]):
        gap = "" if state.has_colour else " "
        if len(key) + len(label) + 1 > room:
            break
        room -= len(key) + len(label) + 1
        texts.append(
            f"{paint.paint('key', key)}{paint.paint('label', f'{label} ')}"
            if state.has_colour
            else f"{key} {label}{gap}"
        )
        room -= 0 if state.has_colour else 1
    return "".join(texts)


def _one_table(paint: Painter, table: Table, room: int) -> list[str]:
    """The table around its selected row."""
    state = paint.state
    rows = _rows(state, table)
    lines: list[str] = [_titles(paint, table, paint.columns)]
    if not rows:
        text = f"nothing contains {state.filters[table.name]!r}" if state.filters.get(table.name) else table.empty
        return [*lines, paint.line("quiet", f"  {text}")]
    at = _selected_at(state, table, rows)
    state.selected[table.name] = rows[at].key
    state.page = max(1, room - 2)
    blocks = {number: _block(paint, table, rows[number], paint.columns, is_chosen=number == at) for number in [at]}
    first, height = at, min(len(blocks[at]), room - 1)
    while first > 0 and at - first < room:  # rows above the selected one, as long as a half of the screen is not full
        block = _block(paint, table, rows[first - 1], paint.columns, is_chosen=False)
        is_last_part = len(rows) - at < (room - 1) // 2
        if height + len(block) > (room - 1 if is_last_part else max((room - 1) // 2, height)):
            break
        first -= 1
        height += len(block)
        blocks[first] = block
    for number in range(first, len(rows)):
        if len(lines) >= room:
            break
        lines += blocks.get(number) or _block(paint, table, rows[number], paint.columns, is_chosen=False)
    return lines


def _titles(paint: Painter, table: Table, width: int) -> str:
    column, falling = _order(paint.state, table)
    arrow = ("▼" if falling else "▲") if paint.state.is_unicode else ("v" if falling else "^")
    titles = [each.title + (arrow if number == column else "") for number, each in enumerate(table.columns)]
    return paint.line("head", " " + _cells(paint, table.columns, titles, width - 1), width)


def _cells(paint: Painter, columns: Sequence[Column], texts: Sequence[str], width: int) -> str:
    """The texts beside each other; columns from the right that leave the first less than 12 are left out."""
    shown = list(zip(columns, texts, strict=True))
    while len(shown) > 1 and width - sum(column.width + 1 for column, _ in shown[1:]) < 12:
        shown.pop()
    room = max(1, width - sum(column.width + 1 for column, _ in shown[1:]))
    return " ".join(paint.fit(text, column.width or room, is_number=column.is_number) for column, text in shown)


def _block(paint: Painter, table: Table, row: Row, width: int, *, is_chosen: bool) -> list[str]:
    """The lines of a row: itself, and in a tree what is below it."""
    mark = ">" if is_chosen else " "
    text = mark + _cells(paint, table.columns, row.make_texts(), width - 1)
    lines = [paint.line("chosen" if is_chosen else row.style, text, width)]
    if paint.state.is_tree or (table.name, row.key) in paint.state.open_rows:
        for child in row.make_lines():
            lines += [paint.line("quiet", f"    {part}", width) for part in wrap(child, max(20, width - 4))]
    return lines


def _all_tables(paint: Painter, shown: Snapshot, room: int) -> list[str]:
    """The first rows of the tables, below or beside each other."""
    tables = [table for table in shown.tables if table.name not in ("Warnings", "Brokers")]
    if paint.columns >= WIDE:
        width = (paint.columns - 2) // 2
        pairs = [tables[number : number + 2] for number in range(0, len(tables), 2)]
        height = room // len(pairs)
        lines: list[str] = []
        for pair in pairs:
            parts = [_first_rows(paint, table, height, width) for table in pair]
            for number in range(height):
                cells = [part[number] if number < len(part) else ("", 0) for part in parts]
                lines.append("  ".join(text + " " * (width - size) for text, size in cells).rstrip(" "))
        return lines
    counts = [min(max(1, len(table.rows)), room) + 1 for table in tables]
    while sum(counts) > room and max(counts) > 2:
        counts[counts.index(max(counts))] -= 1
    return [
        text
        for table, count in zip(tables, counts, strict=True)
        for text, _ in _first_rows(paint, table, count, paint.columns)
    ]


def _first_rows(paint: Painter, table: Table, height: int, width: int) -> list[tuple[str, int]]:
    """Lines with their widths: the titles and as many rows as fit."""
    lines = [(_titles(paint, table, width), width)]
    rows = _rows(paint.state, table)
    if not rows:
        lines.append((paint.line("quiet", f"  {table.empty}", width), min(width, len(table.empty) + 2)))
    for row in rows[: max(0, height - 1)]:
        text = " " + _cells(paint, table.columns, row.make_texts(), width - 1)
        lines.append((paint.line(row.style, text, width), cell_width(text.rstrip())))
    return lines[: max(1, height)]
