"""Sends the records of an input, and accounts for each when that fails or is interrupted.

Records are sent when a batch is full or the input pauses, so that it works for typing and for large files. A run that
does not get to the end says how many records are in the topic for sure, how many may be, and how to go on (`--skip`).
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from time import monotonic
from typing import BinaryIO

import click

from barnabas.cli.records.interrupts import Interrupts
from barnabas.cli.records.produce_input import Input
from barnabas.client.errors import ClientError, NotFound
from barnabas.client.producer import Producer
from barnabas.client.records.record_json import ParsedRecord
from barnabas.terminal.notes import note
from barnabas.terminal.plural import plural
from barnabas.terminal.progress import progress
from barnabas.wire.errors import KafkaError

IDLE_WAIT_S = 0.05
SETTLE_S = 5.0
"""How long a run that failed or is interrupted waits for answers, seconds."""


@dataclass(eq=False)
class Run:
    """One run. `partition` is used for every record; None: that of the record, or the partitioner's choice."""

    producer: Producer
    topic: str
    records: Input
    source: BinaryIO | None
    _: KW_ONLY
    partition: int | None = None
    keeps_partitions: bool = True
    skip: int = 0
    quiet: bool = False
    _to_skip: int = field(default=0, init=False)
    _partition_count: int = field(default=0, init=False)

    def run(self) -> None:
        """Send everything. What ends it early is raised with the account of the records in its text."""
        started = monotonic()
        producer = self.producer
        self._to_skip = self.skip
        self._partition_count = producer.open(self.topic)
        try:
            with (
                _progress(self.source, producer, self.quiet) as show,
                Interrupts(lambda: producer.stop(KeyboardInterrupt())) as interrupts,
            ):
                self._send_all(interrupts, show)
                producer.flush()
                show()
                if producer.transaction is not None:
                    producer.transaction.end(commit=True)
                    producer.transaction.wait_until_visible()
        except (KeyboardInterrupt, click.UsageError) as error:
            self._stopped(error)
        except (KafkaError, ClientError, OSError) as error:
            self._failed(error)
        if not self.quiet:
            _summary(producer, self.topic, monotonic() - started)

    # --- sending

    def _send_all(self, interrupts: Interrupts, show: Callable[[], None]) -> None:
        for block in self.records.blocks(interrupts.immediate):
            for record in block:
                if record is not None:
                    self._send(record)
            show()
            if self.source is not None:
                self._send_while_idle(self.source)
        if self._to_skip:
            raise click.UsageError(f"the input has only {self.skip - self._to_skip} of the {self.skip} records to skip")

    def _send(self, record: ParsedRecord) -> None:
        if self._to_skip:
            self._to_skip -= 1
            return
        partition = self.partition
        if partition is None and self.keeps_partitions:
            partition = record.partition
            if partition is not None and partition >= self._partition_count:
                raise NotFound(
                    f"record {self.producer.outcome().complete + 1 + self.skip} is of partition {partition}, and topic "
                    f"{self.topic!r} has {self._partition_count}; --partitioner NAME chooses other partitions"
                )
        self.producer.send(
            self.topic,
            record.value,
            record.key,
            record.headers,
            partition=partition,
            timestamp_ms=record.timestamp,
        )

    def _send_while_idle(self, source: BinaryIO) -> None:
        """While the input pauses, send the collected records and process answers."""
        if _is_readable(source):
            return
        self.producer.seal()
        while self.producer.is_busy and not _is_readable(source):
            self.producer.pump(IDLE_WAIT_S)

    # --- the end before the end

    def _stopped(self, error: KeyboardInterrupt | click.UsageError) -> None:
        """Interrupted, or a record of the input is wrong: what was taken is sent, but for a transaction."""
        producer = self.producer
        producer.resume()
        limit = monotonic() + SETTLE_S
        try:
            if producer.transaction is None:
                producer.seal()
                while producer.is_busy and monotonic() < limit:
                    producer.pump(IDLE_WAIT_S)
        except (KafkaError, ClientError) as failure:
            producer.settle(SETTLE_S)
            self._raise(error, f"{failure}; {self._account()}")
        producer.settle(max(0.0, limit - monotonic()))
        self._raise(error, self._account())

    def _failed(self, error: KafkaError | ClientError | OSError) -> None:
        self.producer.settle(SETTLE_S)
        account = self._account()
        if isinstance(error, KafkaError):
            raise KafkaError(error.code, f"{error}; {account}") from error
        if isinstance(error, OSError):
            raise ClientError(f"{error.filename or 'the input'}: {error.strerror or error}; {account}") from error
        raise type(error)(f"{error}; {account}") from error

    def _raise(self, error: KeyboardInterrupt | click.UsageError, account: str) -> None:
        if isinstance(error, KeyboardInterrupt):
            note(f"barnabas: interrupted: {account}")
            raise error
        raise click.UsageError(f"{error.message}; {account}", error.ctx) from None

    def _account(self) -> str:
        if self.producer.transaction is not None:
            return self._abort()
        outcome = self.producer.outcome()
        text = f"{_records(outcome.acknowledged)} {'are' if outcome.acknowledged != 1 else 'is'} in {self.topic}"
        if self.producer.acks == 0:
            text = f"{_records(outcome.acknowledged)} sent to {self.topic}, without acknowledgements (acks=0)"
        if outcome.unknown:
            text += f", {outcome.unknown} more may be (sent, not acknowledged)"
        complete = outcome.complete + self.skip
        if complete:
            text += f"; go on with --skip {complete}"
        beyond = outcome.acknowledged - outcome.complete
        return text + (f", which sends {beyond} again" if beyond > 0 else "")

    def _abort(self) -> str:
        """Abort the transaction, and say what that means."""
        transaction = self.producer.transaction
        assert transaction is not None
        try:
            transaction.end(commit=False)
        except (KafkaError, ClientError) as error:
            return f"the transaction could not be aborted and ends after its timeout ({error})"
        return f"the transaction is aborted: none of its records counts in {self.topic}"


def _records(count: int) -> str:
    return f"{count} {plural('record', count)}"


def _is_readable(source: BinaryIO) -> bool:
    """True if more input (or its end) is available now."""
    return bool(select.select([source], [], [], 0)[0])


@contextmanager
def _progress(source: BinaryIO | None, producer: Producer, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar for a file, a line with count and rate for a pipe; yields a function that updates it."""
    if source is None or source.isatty():
        yield lambda: None
        return
    status = os.fstat(source.fileno())
    if not stat.S_ISREG(status.st_mode):
        with progress("records", is_shown=not quiet) as show:
            yield lambda: show(producer.acknowledged_records)
        return
    with progress("bytes", status.st_size, is_shown=bool(status.st_size) and not quiet) as show:
        yield lambda: show(os.lseek(source.fileno(), 0, os.SEEK_CUR), f"{producer.acknowledged_records:,} records")


def _summary(producer: Producer, topic: str, seconds: float) -> None:
    count = producer.acknowledged_records
    rate = count / seconds if seconds else 0
    verb = "sent" if producer.acks == 0 else "committed" if producer.transaction is not None else "acknowledged"
    note(
        f"{_records(count)} {verb} by {topic} in {seconds:.2f} s "
        f"({rate:,.0f}/s, {producer.acknowledged_bytes:,} bytes in batches)"
    )
