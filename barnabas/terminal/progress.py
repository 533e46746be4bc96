"""Progress on stderr, while it is a terminal: a bar where there is a total, a line with count and rate otherwise.

It disappears at the end, and is never written where stdout is the same screen and has the data (`beside_data`).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.terminal.screen import can_redraw, is_terminal

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

RATE_OVER_S = 5.0
"""The rate is the mean of so many seconds."""
Show = Callable[..., None]
"""`show(done, note="")`: how much is done, in the unit of the total, and a text to show after it."""


@contextmanager
def progress(
    unit: str, total: int | None = None, *, is_shown: bool = True, beside_data: bool = False
) -> Iterator[Show]:
    """Yield a function `show(done, note="")` that updates the line; it does nothing where no progress is shown.

    `unit` is the plural of the counted things; `bytes` are shown as kB and MB. `total` None: no end is known.
    """
    is_visible = is_shown and can_redraw(sys.stderr) and not (beside_data and is_terminal(sys.stdout))
    if not is_visible:
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(
        *_columns(unit, total), console=Console(stderr=True), transient=True, expand=total is not None
    ) as line:
        task = line.add_task("", total=total, note="")

        def show(done: int, note: str = "") -> None:
            line.update(task, completed=done, note=note)

        yield show


def _nothing(done: int, note: str = "") -> None:
    """Shows no progress."""


def _columns(unit: str, total: int | None) -> list[ProgressColumn]:
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Counted(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_counted(unit, int(task.completed), total), no_wrap=True)

    class Rate(ProgressColumn):
        """The mean of the last seconds, 0 when nothing moves."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: deque[tuple[float, float]] = deque()

        def render(self, task: Task) -> Text:
            now = task.get_time()
            self.seen.append((now, task.completed))
            while self.seen[0][0] < now - RATE_OVER_S:
                self.seen.popleft()
            start, before = self.seen[0]
            rate = (task.completed - before) / (now - start) if now > start else 0.0
            return Text(f"{_amount(unit, int(rate))}/s", no_wrap=True)

    note = TextColumn("{task.fields[note]}")
    if total is None:
        return [SpinnerColumn(), Counted(), Rate(), TimeElapsedColumn(), note]
    return [BarColumn(bar_width=None), Counted(), Rate(), TimeRemainingColumn(compact=True), note]


def _counted(unit: str, done: int, total: int | None) -> str:
    if unit == "bytes":
        return _amount(unit, done) if total is None else f"{_amount(unit, done)}/{_amount(unit, total)}"
    return f"{done:,} {unit}" if total is None else f"{done:,}/{total:,} {unit}"


def _amount(unit: str, number: int) -> str:
    if unit != "bytes":
        return f"{number:,}"
    from rich.filesize import decimal

    return decimal(number)
