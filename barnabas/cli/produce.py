"""`barnabas produce`: sends records from a file or stdin, one per line.

A batch is sent when it is full or when the input pauses, so that it works for typing and for large files.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import randrange
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO

import click

from barnabas.cli.escapes import unescape
from barnabas.cli.parameters import bootstrap_option, connect, timeout_option
from barnabas.terminal.progress import progress

if TYPE_CHECKING:
    from barnabas.client.producer import MakePartitioner, Producer

CHUNK_BYTES = 1 << 18
IDLE_WAIT_S = 0.05
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}
PARTITIONERS = ("murmur2", "round-robin", "sticky", "load-aware")
BATCH_BYTES = 128 * 1024

Header = tuple[str, bytes | None]
Show = Callable[[], None]


@click.command()
@click.argument("topic")
@click.option("-f", "--file", "source", type=click.File("rb"), default="-", metavar="FILE", help="[default: stdin]")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Delimiter between key and value of a line, as in 'k:v'.")
@click.option("-k", "--key", metavar="TEXT", help="The key of every record.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be repeated.")
@click.option("-Z", "--empty-is-null", is_flag=True, help="An empty key or value is null (a tombstone).")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Send all records to this partition.")
@click.option(
    "--partitioner",
    type=click.Choice(PARTITIONERS),
    default="load-aware",
    show_default=True,
    help="murmur2: by key, random without a key; round-robin; sticky: by key, one batch per partition without a key; "
    "load-aware: sticky, prefers partitions with a short queue (KIP-794; Kafka's default).",
)
@click.option("-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("-a", "--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option(
    "--idempotent/--no-idempotent",
    default=True,
    show_default=True,
    help="Retries append no record twice (with acks=all).",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=BATCH_BYTES, metavar="BYTES", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No summary and no progress bar.")
@bootstrap_option
@timeout_option
def produce(
    topic: str,
    source: BinaryIO,
    key_delimiter: str | None,
    key: str | None,
    headers: tuple[str, ...],
    empty_is_null: bool,
    partition: int | None,
    partitioner: str,
    compression: str,
    acks: str,
    idempotent: bool,
    batch_size: int,
    quiet: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Send the lines of FILE or stdin as records to TOPIC."""
    from barnabas.client.producer import Producer

    if key is not None and key_delimiter is not None:
        raise click.UsageError("-k and -K exclude each other; give one of them")
    parse = LineParser(key_delimiter, key, empty_is_null)
    fixed_headers = parse_headers(headers)
    started = monotonic()
    with connect(bootstrap, timeout_s) as cluster:
        producer = Producer(
            cluster,
            partitioner_maker(partitioner, batch_size),
            acks=ACKS[acks],
            codec=CODECS.index(compression),
            batch_bytes=batch_size,
            idempotent=idempotent,
        )
        with _progress(source, producer, quiet) as show:
            try:
                for lines in read_lines(source):
                    for line in lines:
                        record_key, value = parse(line)
                        producer.send(topic, value, record_key, fixed_headers, partition=partition)
                    show()
                    _send_while_idle(source, producer)
            finally:
                producer.flush()  # also after Ctrl-C or an invalid line: send the records taken so far
            show()
    if not quiet:
        _summary(producer, topic, monotonic() - started)


class LineParser:
    """Splits a line into key and value. A line without the delimiter is a usage error with its number."""

    def __init__(self, key_delimiter: str | None, key: str | None, empty_is_null: bool) -> None:
        self.delimiter = None if key_delimiter is None else unescape(key_delimiter, "-K")
        self.key = None if key is None else key.encode()
        self.empty_is_null = empty_is_null
        self.number = 0

    def __call__(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Key and value of the next line."""
        self.number += 1
        key, value = self.key, line
        if self.delimiter is not None:
            key, found, value = line.partition(self.delimiter)
            if not found:
                raise click.UsageError(
                    f"line {self.number} has no {self.delimiter.decode(errors='replace')!r} between key and value (-K)"
                )
        if self.empty_is_null:
            return key or None, value or None
        return key, value


def parse_headers(texts: Sequence[str]) -> list[Header]:
    """Parse `NAME=VALUE` headers in order; other texts are a usage error. A name without a value has a null value."""
    headers: list[Header] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise click.BadParameter(f"must be NAME=VALUE, not {text!r}", param_hint="-H")
        headers.append((name, value.encode() if equals else None))
    return headers


def partitioner_maker(name: str, batch_bytes: int) -> MakePartitioner:
    """A factory of the partitioner with this name."""
    from barnabas.wire.partitioners import LoadAware, Murmur2, RoundRobin, Sticky

    makers: dict[str, MakePartitioner] = {
        "murmur2": lambda count: Murmur2(count, randrange),
        "round-robin": RoundRobin,
        "sticky": lambda count: Sticky(count, randrange, batch_bytes),
        "load-aware": lambda count: LoadAware(count, randrange, batch_bytes),
    }
    return makers[name]


def read_lines(source: BinaryIO) -> Iterator[list[bytes]]:
    """Read lines in blocks as they become available, without line ends (\\n or \\r\\n)."""
    rest = b""
    while chunk := os.read(source.fileno(), CHUNK_BYTES):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]


def _send_while_idle(source: BinaryIO, producer: Producer) -> None:
    """While the input pauses, send the collected records and process answers."""
    if _is_readable(source):
        return
    producer.seal()
    while producer.is_busy and not _is_readable(source):
        producer.pump(IDLE_WAIT_S)


def _is_readable(source: BinaryIO) -> bool:
    """True if more input (or its end) is available now."""
    return bool(select.select([source], [], [], 0)[0])


@contextmanager
def _progress(source: BinaryIO, producer: Producer, quiet: bool) -> Iterator[Show]:
    """A progress bar for input of known size; yields a function that updates it."""
    size = 0 if source.isatty() else os.fstat(source.fileno()).st_size
    with progress("bytes", size, is_shown=bool(size) and not quiet) as show:
        yield lambda: show(
            os.lseek(source.fileno(), 0, os.SEEK_CUR) if size else 0, f"{producer.acknowledged_records:,} records"
        )


def _summary(producer: Producer, topic: str, seconds: float) -> None:
    count = producer.acknowledged_records
    rate = count / seconds if seconds else 0
    verb = "sent" if producer.acks == 0 else "acknowledged"
    click.echo(
        f"{count} record{'s'[: count != 1]} {verb} by {topic} in {seconds:.2f} s "
        f"({rate:,.0f}/s, {producer.acknowledged_bytes:,} bytes in batches)",
        err=True,
    )
