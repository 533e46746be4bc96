"""`barnabas produce`: sends lines, JSON lines or whole files as records."""

from __future__ import annotations

import sys
from pathlib import Path
from random import randrange
from typing import BinaryIO

import click

from barnabas.cli.options.offset_spec import parse_offset_spec
from barnabas.cli.options.parameters import cluster_options
from barnabas.cli.records.produce_input import (
    Fields,
    FilesInput,
    Input,
    JsonInput,
    StreamInput,
    parse_delimiter,
    parse_headers,
)
from barnabas.cli.records.produce_run import Run
from barnabas.client.cluster import Cluster
from barnabas.client.producer import MakePartitioner, Producer
from barnabas.terminal.notes import note
from barnabas.wire.clients.partitioners import LoadAware, Murmur2, RoundRobin, Sticky

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}
PARTITIONERS = ("murmur2", "round-robin", "sticky", "load-aware")
BATCH_BYTES = 128 * 1024


@click.command()
@click.argument("topic")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-f", "--file", "source", type=click.File("rb"), default="-", metavar="FILE", help="[default: stdin]")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per line, as `consume --json` prints them.")
@click.option("--file-per-record", is_flag=True, help="Each FILE is one record.")
@click.option("-D", "--delimiter", metavar="TEXT", help="Delimiter between records, as in '\\0'. [default: line end]")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Delimiter between key and value of a line, as in 'k:v'.")
@click.option("-k", "--key", metavar="TEXT", help="The key of every record.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be repeated.")
@click.option("-Z", "--empty-is-null", is_flag=True, help="An empty key, value or header is null (a tombstone).")
@click.option("--timestamp", metavar="TIME", help="The timestamp of every record: ms, seconds or a date and time.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Send all records to this partition.")
@click.option(
    "--partitioner",
    type=click.Choice(PARTITIONERS),
    help="murmur2: by key, random without a key; round-robin; sticky: by key, one batch per partition without a key; "
    "load-aware: sticky, prefers partitions with a short queue (KIP-794; Kafka's default) and, where several brokers "
    "lead, partitions of brokers with little load (0.4 CPU, 0.2 memory, 0.2 disk, 0.2 message rate). "
    "[default: load-aware; with --json the partition of the object, if it has one]",
)
@click.option("-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--compression-level", type=int, metavar="N", help="Level of gzip, lz4 or zstd. [default: the codec's]")
@click.option("-a", "--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option(
    "--idempotent/--no-idempotent",
    default=True,
    show_default=True,
    help="Retries append no record twice (with acks=all).",
)
@click.option("--transactional-id", metavar="ID", help="One transaction: all records or, after a failure, none.")
@click.option(
    "--transaction-timeout",
    "transaction_timeout_s",
    type=click.IntRange(min=1),
    default=60,
    metavar="SECONDS",
    show_default=True,
    help="The broker aborts a transaction after this time.",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=BATCH_BYTES, metavar="BYTES", show_default=True)
@click.option("--skip", type=click.IntRange(min=0), default=0, metavar="N", help="Do not send the first N records.")
@click.option("-q", "--quiet", is_flag=True, help="No summary and no progress bar.")
@cluster_options
def produce(
    topic: str,
    files: tuple[Path, ...],
    source: BinaryIO,
    as_json: bool,
    file_per_record: bool,
    delimiter: str | None,
    key_delimiter: str | None,
    key: str | None,
    headers: tuple[str, ...],
    empty_is_null: bool,
    timestamp: str | None,
    partition: int | None,
    partitioner: str | None,
    compression: str,
    compression_level: int | None,
    acks: str,
    idempotent: bool,
    transactional_id: str | None,
    transaction_timeout_s: int,
    batch_size: int,
    skip: int,
    quiet: bool,
    cluster: Cluster,
) -> None:
    """Send the lines of stdin or of FILE as records to TOPIC. --timeout is for each batch."""
    fields = Fields(
        None if key is None else key.encode(),
        None if key_delimiter is None else parse_delimiter(key_delimiter, "-K"),
        parse_headers(headers, empty_is_null),
        empty_is_null,
        None if timestamp is None else _timestamp(timestamp),
    )
    _check(fields, files, as_json, file_per_record, delimiter)
    if transactional_id is not None and (ACKS[acks] != -1 or not idempotent):
        raise click.UsageError("a transaction needs --acks all and --idempotent")
    if files and not file_per_record:
        source = click.get_current_context().with_resource(files[0].open("rb"))
    records = _input(source, files if file_per_record else (), as_json, delimiter, fields)
    if not file_per_record and not quiet:
        _say_how_to_end(source)
    producer = Producer(
        cluster,
        partitioner_maker(partitioner or "load-aware", batch_size),
        acks=ACKS[acks],
        codec=CODECS.index(compression),
        level=compression_level,
        batch_bytes=batch_size,
        idempotent=idempotent,
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_s * 1000,
    )
    Run(
        producer,
        topic,
        records,
        None if file_per_record else source,
        partition=partition,
        keeps_partitions=partitioner is None,
        skip=skip,
        quiet=quiet,
    ).run()


def _input(source: BinaryIO, files: tuple[Path, ...], as_json: bool, delimiter: str | None, fields: Fields) -> Input:
    if files:
        return FilesInput(files, fields)
    if as_json:
        return JsonInput(source, fields)
    return StreamInput(source, b"\n" if delimiter is None else parse_delimiter(delimiter, "-D"), fields)


def _say_how_to_end(source: BinaryIO) -> None:
    if source.isatty() and sys.stderr.isatty():
        note("barnabas: reading records from the terminal, one a line; Ctrl-D ends")


def _check(
    fields: Fields, files: tuple[Path, ...], as_json: bool, file_per_record: bool, delimiter: str | None
) -> None:
    """Refuse options that exclude each other."""
    if fields.key is not None and fields.key_delimiter is not None:
        raise click.UsageError("-k and -K exclude each other; give one of them")
    if file_per_record and not files:
        raise click.UsageError("--file-per-record needs the names of files after TOPIC")
    if len(files) > 1 and not file_per_record:
        raise click.UsageError(
            f"{len(files)} FILEs: give one, whose lines are sent, or --file-per-record, which sends each as one record"
        )
    if as_json and (fields.key_delimiter is not None or delimiter is not None):
        raise click.UsageError("--json has keys and ends of records of its own; leave out -K and -D")
    if file_per_record and (as_json or fields.key_delimiter is not None or delimiter is not None):
        raise click.UsageError("--file-per-record sends files as they are; leave out --json, -K and -D")


def _timestamp(text: str) -> int:
    """Milliseconds since 1970 of a time as in `@TIME`."""
    try:
        spec = parse_offset_spec(f"@{text.removeprefix('@')}", "--timestamp")
    except click.BadParameter:
        raise click.BadParameter(
            f"{text!r} is not a time: ms (13 digits), seconds (10 digits), 2026-11-21T09:00 (UTC), or -1h",
            param_hint="--timestamp",
        ) from None
    return spec.value


def partitioner_maker(name: str, batch_bytes: int) -> MakePartitioner:
    """A factory of the partitioner with this name."""
    makers: dict[str, MakePartitioner] = {
        "murmur2": lambda count: Murmur2(count, randrange),
        "round-robin": RoundRobin,
        "sticky": lambda count: Sticky(count, randrange, batch_bytes),
        "load-aware": lambda count: LoadAware(count, randrange, batch_bytes),
    }
    return makers[name]
