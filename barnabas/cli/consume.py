"""`barnabas consume`: prints records with a format string or as JSON lines.

It reads without joining a group and commits no offsets.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from barnabas.cli.escapes import compile_format
from barnabas.cli.offset_spec import OffsetSpec, parse_range, resolve_offset_specs
from barnabas.cli.parameters import bootstrap_option, connect, timeout_option

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.reader import Reader
    from barnabas.wire.records import Record

TopicPartition = tuple[str, int]
Render = Callable[[TopicPartition, "Record"], bytes]

DEFAULT_FORMAT = r"%v\n"


@click.command(
    epilog="Format verbs: %t topic, %p partition, %o offset, %k key, %v or %s value, %h headers, %T or %d timestamp in "
    "ms, %K and %S bytes of key and value, %% a percent sign; \\n \\t \\r \\0 \\xNN."
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-o",
    "--offset",
    default="beginning",
    show_default=True,
    metavar="FROM[:TO]",
    help="beginning, end, an offset, -N (the last N of each partition), @TIME; ':end' stops at the current end.",
)
@click.option("-p", "--partition", "wanted", multiple=True, type=click.IntRange(min=0), help="[default: all]")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="Stop at the current end of the partitions.")
@click.option("-f", "--format", "format_", metavar="FORMAT", help=f"Format of a record. [default: {DEFAULT_FORMAT}]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@bootstrap_option
@timeout_option
def consume(
    topics: tuple[str, ...],
    offset: str,
    wanted: tuple[int, ...],
    count: int | None,
    exit_at_end: bool,
    format_: str | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Read records of TOPICs, without joining a group."""
    from barnabas.client.reader import Reader

    if as_json and format_ is not None:
        raise click.UsageError("--json and --format exclude each other; give one of them")
    render = json_line if as_json else compile_format(DEFAULT_FORMAT if format_ is None else format_, "-f")
    start, end = parse_range(offset, "-o")
    if exit_at_end and end is None:
        end = OffsetSpec("end")
    with connect(bootstrap, timeout_s) as cluster:
        partitions = _partitions(cluster, topics, wanted)
        ends = None if end is None else resolve_offset_specs(cluster, dict.fromkeys(partitions, end))
        starts = resolve_offset_specs(cluster, dict.fromkeys(partitions, start))
        _print(Reader(cluster, starts, ends), render, count)


def _print(reader: Reader, render: Render, count: int | None) -> None:
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    left = count
    for partition, record in reader.records(on_idle=flush):
        write(render(partition, record))
        if left is not None:
            left -= 1
            if not left:
                break
    flush()


def _partitions(cluster: Cluster, topics: tuple[str, ...], wanted: tuple[int, ...]) -> list[TopicPartition]:
    from barnabas.client.errors import NotFound

    found: list[TopicPartition] = []
    for name in topics:
        count = len(cluster.find_topic(name).leaders)
        for index in wanted:
            if index >= count:
                raise NotFound(f"topic {name!r} has no partition {index}; it has {count}")
        found += [(name, index) for index in wanted or range(count)]
    return found


def json_line(partition: TopicPartition, record: Record) -> bytes:
    """A record as one line of JSON. Bytes that are not UTF-8 are base64, in `key_base64` and `value_base64`."""
    fields: dict[str, object] = {
        "topic": partition[0],
        "partition": partition[1],
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    fields |= _text("key", record.key) | _text("value", record.value)
    if record.headers:
        fields["headers"] = [{"name": name} | _text("value", value) for name, value in record.headers]
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _text(name: str, value: bytes | None) -> dict[str, object]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}
