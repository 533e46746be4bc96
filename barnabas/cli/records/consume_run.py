"""Prints the records of a source until an end is reached: a count, the ends of partitions, silence, a time, Ctrl-C.

stdout gets records and nothing else, and is flushed before each wait. The line on a terminal's stderr shows count and
rate, or a bar where there is an end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from time import monotonic

import click

from barnabas.cli.records.consume_source import Source
from barnabas.client.errors import TimedOut
from barnabas.client.offsets import TopicPartition
from barnabas.client.records.expression import Filter
from barnabas.terminal.plural import plural
from barnabas.terminal.progress import Show, progress
from barnabas.wire.batches.records import Record

Render = Callable[["TopicPartition", "Record"], bytes]
Matches = Callable[["TopicPartition", "Record"], bool]
SHOW_EVERY_S = 0.1
CHECK_EVERY = 1024
"""Records between two looks at the clock."""


class Stop(Exception):  # noqa: N818 (an end that was asked for)
    """A limit was reached."""


@dataclass
class Limits:
    """When to stop: after `count` records, `idle_s` of silence, `timeout_s` in all. `has_end`: at the source's end."""

    count: int | None
    idle_s: float | None
    timeout_s: float | None
    _: KW_ONLY
    has_end: bool = False
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = monotonic()


@dataclass(eq=False)
class Run:
    """One run over a source."""

    source: Source
    render: Render
    limits: Limits
    matches: Sequence[Matches] = ()
    expression: Filter | None = None
    note: Callable[[str], None] = click.echo
    _: KW_ONLY
    quiet: bool = False
    seen: int = field(default=0, init=False)
    printed: int = field(default=0, init=False)
    _show: Show | None = field(default=None, init=False)
    _last_record: float = field(init=False)
    _seen_at_last_check: int = field(default=0, init=False)
    _shown_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._last_record = monotonic()

    def run(self) -> None:
        """Print until an end. Raises TimedOut if what was asked for was not reached in time."""
        _, total = self.source.progress()
        if self.limits.count is not None:
            total = self.limits.count
        try:
            with progress("records", total, is_shown=not self.quiet, beside_data=True) as show:
                self._show = show
                self._print()
        except Stop:
            pass
        except KeyboardInterrupt:
            sys.stdout.buffer.flush()
            self.source.close()
            self.note(f"interrupted: {self._summary()}")
            raise
        except BaseException as error:
            # What stays in a pipe without a reader was not delivered.
            self.source.close(commit=not isinstance(error, BrokenPipeError))
            raise
        sys.stdout.buffer.flush()
        self.source.close()
        if self.matches:
            self.note(self._summary())

    def _print(self) -> None:
        write, render, matches, count = sys.stdout.buffer.write, self.render, self.matches, self.limits.count
        processed = self.source.processed
        for partition, record in self.source.records(self._on_idle):
            self.seen += 1
            if not matches or all(match(partition, record) for match in matches):
                self.printed += 1
                write(render(partition, record))
            processed(partition, record.offset + 1)
            if self.printed == count:
                return
            if self.seen % CHECK_EVERY == 0:
                self._check()

    def _on_idle(self) -> None:
        sys.stdout.buffer.flush()
        self._check()

    def _check(self) -> None:
        """Update the line; raise when a limit of time is reached."""
        now = monotonic()
        if self.seen != self._seen_at_last_check:
            self._seen_at_last_check = self.seen
            self._last_record = now
        if self._show is not None and now - self._shown_at >= SHOW_EVERY_S:
            self._shown_at = now
            done = self.printed if self.limits.count is not None else self.source.progress()[0]
            self._show(done, f"{self.printed:,} printed" if self.matches else "")
        if self.limits.timeout_s is not None and now - self.limits.started >= self.limits.timeout_s:
            self._out_of_time()
        if self.limits.idle_s is not None and now - self._last_record >= self.limits.idle_s:
            raise Stop

    def _out_of_time(self) -> None:
        limits = self.limits
        if limits.count is None and not limits.has_end:
            raise Stop  # to read for this time is what was asked for
        progress = f"{self.printed} of {limits.count} records" if limits.count is not None else f"{self._summary()}"
        end = "" if limits.count is not None else ", not the end of every partition"
        raise TimedOut(f"{progress} read in {limits.timeout_s:g} s (--timeout){end}")

    def _summary(self) -> str:
        seconds = monotonic() - self.limits.started
        if not self.matches:
            return f"{_records(self.printed)} in {seconds:.1f} s"
        unusable = self.expression.unusable if self.expression is not None else 0
        lacking = f"; {unusable} without a field of the filter, or with another type of it" if unusable else ""
        return f"{self.printed} of {_records(self.seen)} matched in {seconds:.1f} s{lacking}"


def _records(count: int) -> str:
    return f"{count} {plural('record', count)}"
