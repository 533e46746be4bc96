"""`cat -P`: messages from stdin or files. As in kcat an empty message without a key is not sent."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import randrange
from zlib import crc32

import click

from barnabas.cli.cat.options import Options
from barnabas.cli.cat.properties import choice, number
from barnabas.cli.records.produce_input import Fields, Waiting, read_pieces
from barnabas.cli.records.produce_run import Run
from barnabas.client.producer import MakePartitioner, Producer
from barnabas.client.records.record_json import ParsedRecord
from barnabas.wire.clients.partitioners import Murmur2

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}
PARTITIONERS = ("consistent_random", "consistent", "murmur2_random", "murmur2", "random")


class Crc32:
    """librdkafka's default, `consistent_random`: by CRC-32 of the key; null, and if wanted empty, keys at random."""

    def __init__(self, count: int, empty_is_random: bool) -> None:
        self.count = count
        self.empty_is_random = empty_is_random

    def choose(self, key: bytes | None, size: int) -> int:  # noqa: ARG002 (the common signature)
        """The partition of a record."""
        if self.empty_is_random and not key:
            return randrange(self.count)
        return crc32(key or b"") % self.count


class RandomPartition:
    """Any partition, whatever the key."""

    def __init__(self, count: int) -> None:
        self.count = count

    def choose(self, key: bytes | None, size: int) -> int:  # noqa: ARG002 (the common signature)
        """The partition of a record."""
        return randrange(self.count)


class Murmur2Null(Murmur2):
    """librdkafka's `murmur2`: null keys have the hash of the empty key."""

    def choose(self, key: bytes | None, size: int) -> int:
        """The partition of a record."""
        return super().choose(key or b"", size)


MAKERS: dict[str, MakePartitioner] = {
    "consistent_random": lambda count: Crc32(count, empty_is_random=True),
    "consistent": lambda count: Crc32(count, empty_is_random=False),
    "murmur2_random": lambda count: Murmur2(count, randrange),
    "murmur2": lambda count: Murmur2Null(count, randrange),
    "random": RandomPartition,
}


@dataclass(eq=False)
class Messages:
    """The messages of stdin, of the lines of one file (-l), or each file as one; at most `count`."""

    options: Options
    fields: Fields
    number: int = field(default=0, init=False)

    def blocks(self, waiting: Waiting) -> Iterator[Iterable[ParsedRecord | None]]:
        """Records as they become available."""
        remaining = self.options.count
        for block in self._blocks(waiting):
            records = list(islice((record for record in block if record is not None), remaining))
            yield records
            if remaining is not None:
                remaining -= len(records)
                if not remaining:
                    return

    def _blocks(self, waiting: Waiting) -> Iterator[Iterable[ParsedRecord | None]]:
        options = self.options
        if options.names and not options.lines:
            for name in options.names:
                yield [self._record(Path(name).read_bytes())]
            return
        if not options.names:
            yield from (map(self._record, pieces) for pieces in self._pieces(sys.stdin.buffer, waiting))
            return
        with Path(options.names[0]).open("rb") as file:
            yield from (map(self._record, pieces) for pieces in self._pieces(file, waiting))

    def _pieces(self, source: object, waiting: Waiting) -> Iterator[list[bytes]]:
        return read_pieces(source, self.options.delimiter, waiting, keeps_returns=True)  # type: ignore[arg-type]

    def _record(self, message: bytes) -> ParsedRecord | None:
        self.number += 1
        if not message:
            return None
        fields = self.fields
        key, value = fields.key, message
        if fields.key_delimiter is not None:
            before, delimiter, after = message.partition(fields.key_delimiter)
            if delimiter:
                value = after
                if before or not (self.options.null and key is not None):
                    key = before  # with -Z an empty key is null, and -k replaces a null key
        if self.options.tee:
            sys.stdout.buffer.write(message)
        return fields.record(key, value)


def produce(options: Options) -> None:
    """Send messages until the end of the input, or -c of them."""
    properties = options.properties
    if options.lines and len(options.names) != 1:
        raise click.UsageError("-l needs one FILE")
    for name in options.names:
        if not Path(name).is_file():
            raise click.UsageError(f"{name}: no such file")
    if options.compression not in CODECS:
        raise click.BadParameter(f"must be {', '.join(CODECS)}, not {options.compression!r}", param_hint="-z")
    acks = ACKS[choice(properties, "acks", tuple(ACKS), "all")]
    transactional_id = properties.get("transactional.id")
    fields = Fields(
        None if options.key is None else options.key.encode(),
        options.key_delimiter,
        [_header(text) for text in options.headers],
        options.null,
        None,
    )
    with options.connect() as cluster:
        cluster.timeout_s = number(properties, "message.timeout.ms", 30_000) / 1000
        producer = Producer(
            cluster,
            MAKERS[choice(properties, "partitioner", PARTITIONERS, PARTITIONERS[0])],
            acks=acks,
            codec=CODECS.index(options.compression),
            batch_bytes=number(properties, "batch.size", 128 * 1024),
            idempotent=choice(properties, "enable.idempotence", ("true", "false"), "true") == "true",
            transactional_id=transactional_id,
        )
        source = None if options.names else sys.stdin.buffer
        Run(producer, options.topic, Messages(options, fields), source, partition=options.partition, quiet=True).run()
    if options.tee:
        sys.stdout.buffer.flush()


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not name:
        raise click.BadParameter(f"must be NAME=VALUE or NAME, not {text!r}", param_hint="-H")
    return name, value.encode() if equals else None
