"""`cat -C` and `cat -G`: messages in kcat's forms, and its lines about ends and rebalances on stderr."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator
from time import monotonic

import click

from barnabas.cli.cat.options import Options
from barnabas.cli.cat.properties import choice
from barnabas.cli.options.escapes import compile_format, printable
from barnabas.cli.records.consume_source import find_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, NotFound
from barnabas.client.groups.consumer import GroupConsumer
from barnabas.client.groups.member import GroupMember
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, TopicPartition, list_offsets
from barnabas.client.positions import OffsetSpec, resolve_offset_specs
from barnabas.client.reader import Position, Reader
from barnabas.client.records.record_json import shown_json
from barnabas.wire.batches.records import Record

# --- kcat's deserializers (-s): a pack string such as `>iq` or `hs` turns bytes into text

NUMBERS = "bBhHiIqQ"
LETTERS = f"<>{NUMBERS}cs$"


class Unpacker:
    """One pack string. Numbers are printed in decimal, one after the other, as kcat does."""

    def __init__(self, pack: str) -> None:
        wrong = next((letter for letter in pack if letter not in LETTERS), None)
        if not pack or wrong is not None:
            what = f"has {wrong!r}" if wrong is not None else "is empty"
            raise click.BadParameter(f"the pack string {pack!r} {what}; there are {LETTERS}", param_hint="-s")
        self.pack = pack

    def __call__(self, data: bytes) -> bytes:
        """The text of `data`. ClientError if it does not fit."""
        order, at, out = ">", 0, b""
        for letter in self.pack:
            if letter in "<>":
                order = letter
            elif letter == "$":
                if at < len(data):
                    raise ClientError(
                        f"expected the end of the value, but {len(data) - at} bytes remain (-s {self.pack})"
                    )
            elif letter == "s":
                out, at = out + data[at:], len(data)
            else:
                size = 1 if letter == "c" else struct.calcsize(order + letter)
                if at + size > len(data):
                    remaining = len(data) - at
                    raise ClientError(f"{letter} needs {size} bytes, but {remaining} remain (-s {self.pack})")
                piece, at = data[at : at + size], at + size
                out += piece if letter == "c" else b"%d" % struct.unpack(order + letter, piece)[0]
        return out


def parse_serdes(texts: tuple[str, ...]) -> tuple[Unpacker | None, Unpacker | None]:
    """The unpackers of key and value."""
    key: Unpacker | None = None
    value: Unpacker | None = None
    for text in texts:
        if text.startswith("key="):
            key = Unpacker(text[4:])
        elif text.startswith("value="):
            value = Unpacker(text[6:])
        else:
            key = value = Unpacker(text)
    return key, value


# --- messages

Render = Callable[[TopicPartition, Record], bytes]
NULL = b"NULL"
RESET = {
    "earliest": "start",
    "smallest": "start",
    "beginning": "start",
    "latest": "end",
    "largest": "end",
    "end": "end",
}


class Stop(Exception):  # noqa: N818 (an end that was asked for)
    """The end of all partitions (-e)."""


def consume(options: Options) -> None:
    """Print messages until an end that was asked for."""
    render = None if options.as_json else _format(options)
    if options.group is not None:
        _of_group(options, options.group, render)
        return
    if options.names:
        raise click.UsageError(f"{options.names[0]!r} is not expected: -t names the topic")
    committed_only = _committed_only(options)
    start, end_ms = _positions(options)
    with options.connect() as cluster:
        count = len(cluster.find_topic(options.topic).leaders)
        if options.partition is not None and options.partition >= count:
            raise NotFound(f"topic {options.topic!r} has no partition {options.partition}; it has {count}")
        indexes = range(count) if options.partition is None else [options.partition]
        partitions = [(options.topic, index) for index in indexes]
        level = READ_COMMITTED if committed_only else READ_UNCOMMITTED
        starts = resolve_offset_specs(
            cluster,
            dict.fromkeys(partitions, start),
            isolation_level=level,
            on_moved=lambda partition, offset, _: options.note(
                f"{partition[0]} [{partition[1]}]: offset reset to {offset}: out of range"
            ),
        )
        ends = None if end_ms is None else _ends(cluster, partitions, end_ms)
        reader = Reader(cluster, starts, ends, committed_only=committed_only, on_note=options.note)
        Printing(options, cluster, reader, render).run(reader.records, lambda _one, _offset: None)


def _ends(cluster: Cluster, partitions: list[TopicPartition], end_ms: int) -> dict[TopicPartition, int]:
    ends = list_offsets(cluster, dict.fromkeys(partitions, end_ms))
    return {partition: offset for partition, offset in ends.items() if offset >= 0}


def _committed_only(options: Options) -> bool:
    levels = ("read_committed", "read_uncommitted")
    return choice(options.properties, "isolation.level", levels, levels[0]) == levels[0]


def _positions(options: Options) -> tuple[OffsetSpec, int | None]:
    """Where to begin, and the time of the end in ms or None."""
    start, end_ms = OffsetSpec("start"), None
    for text in options.offsets:
        number = text[2:] if text.startswith(("s@", "e@")) else text
        if text.startswith("e@") and number.isdigit():
            end_ms = int(number)
        elif text.startswith("s@") and number.isdigit():
            start = OffsetSpec("time", int(number))
        elif text in ("beginning", "end"):
            start = OffsetSpec("start" if text == "beginning" else "end")
        elif text.removeprefix("-").isdigit():
            start = OffsetSpec("last" if text.startswith("-") else "offset", abs(int(text)))
        else:
            stored = "; stored offsets are those of a group (-G)" if text == "stored" else ""
            raise click.BadParameter(
                f"must be beginning, end, N, -N, s@MS or e@MS, not {text!r}{stored}", param_hint="-o"
            )
    return start, end_ms


def _of_group(options: Options, group: str, render: Render | None) -> None:
    topics = options.names or options.topics
    if not topics:
        raise click.UsageError("-G GROUP needs the names of topics")
    if options.partition is not None:
        raise click.UsageError("-G and -p exclude each other: a group distributes the partitions itself")
    # As in kcat -o is where every assignment begins, whatever is committed.
    start, end_ms = _positions(options)
    if end_ms is not None:
        raise click.BadParameter("e@MS is not served with -G", param_hint="-o")
    reset = RESET[choice(options.properties, "auto.offset.reset", tuple(RESET), "latest")]
    spec = start if options.offsets else OffsetSpec(reset)
    options.note("Waiting for group rebalance")
    with options.connect() as cluster, options.connect() as member_cluster:
        find_topics(cluster, topics, regex=False)
        member = GroupMember(
            member_cluster,
            group,
            lambda client: find_topics(client, topics, regex=False),
            options.properties.get("group.instance.id"),
        )
        consumer = GroupConsumer(
            cluster,
            member,
            lambda client, partitions: resolve_offset_specs(client, dict.fromkeys(partitions, spec)),
            uses_committed=not options.offsets,
            committed_only=_committed_only(options),
            before_commit=sys.stdout.buffer.flush,
            on_rebalance=lambda verb, partitions: options.note(
                f"Group {group} rebalanced (memberid {member.member_id}): {verb}: {_named(partitions)}"
            ),
            note=options.note,
        )
        try:
            Printing(options, cluster, consumer.reader, render).run(consumer.records, consumer.processed)
        except BrokenPipeError:
            consumer.close(commit=False)
            raise
        except BaseException:
            consumer.close()
            raise
        consumer.close()
        if consumer.reader.positions:
            consumer.on_rebalance("revoked", list(consumer.reader.positions))


def _named(partitions: list[TopicPartition]) -> str:
    return ", ".join(f"{topic} [{index}]" for topic, index in partitions)


class Printing:
    """Prints what a reader reads, counts it, and says where partitions end. `render` None: as JSON."""

    def __init__(self, options: Options, cluster: Cluster, reader: Reader, render: Render | None) -> None:
        self.options = options
        self.cluster = cluster
        self.reader = reader
        self.printed = 0
        self._is_terminal = sys.stdout.isatty()
        self._started = monotonic()
        self._noted_ends: dict[TopicPartition, int] = {}
        self._render = self._json if render is None else render

    def run(
        self,
        records: Callable[[Callable[[], None]], Iterator[tuple[TopicPartition, Record]]],
        processed: Callable[[TopicPartition, int], None],
    ) -> None:
        """Print until -c, -e, an end time or Ctrl-C."""
        write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
        render, count, unbuffered = self._render, self.options.count, self.options.unbuffered
        try:
            for partition, record in records(self._on_idle):
                write(render(partition, record))
                processed(partition, record.offset + 1)
                self.printed += 1
                if unbuffered:
                    flush()
                if self.printed == count:
                    break
            else:
                self._say_ends()
        except Stop:
            pass
        except KeyboardInterrupt:
            flush()
            self.options.note(f"interrupted: {self.printed} messages in {monotonic() - self._started:.1f} s")
            raise
        flush()

    def _on_idle(self) -> None:
        sys.stdout.buffer.flush()
        self._say_ends()

    def _say_ends(self) -> None:
        """Say once where a partition ends or its stop time is reached; `Stop` when all are at the end (-e)."""
        positions = self.reader.positions
        at_end = [position for position in positions.values() if position.is_done or position.is_at_end]
        is_last = len(at_end) == len(positions) > 0
        new = [
            position for position in at_end if self._noted_ends.get((position.topic, position.index)) != position.offset
        ]
        exits = is_last and (self.options.exit_at_end or self.reader.is_done)
        for number, position in enumerate(new, 1):
            self._noted_ends[position.topic, position.index] = position.offset
            self.options.note(_end(position) + (": exiting" if exits and number == len(new) else ""))
        if exits:
            raise Stop

    def _json(self, partition: TopicPartition, record: Record) -> bytes:
        """kcat's envelope. Bytes that are no UTF-8 are written as they are."""
        topic, index = partition
        current = self.reader.current
        kind = "logappend" if current is not None and current.timestamp_type else "create"
        leader = self.cluster.topic(topic, monotonic() + self.cluster.timeout_s).leaders[index]
        headers = [text for name, value in record.headers for text in (name, _text(value))]
        document = {
            "topic": topic,
            "partition": index,
            "offset": record.offset,
            "tstype": kind if record.timestamp >= 0 else "unknown",
            "ts": max(record.timestamp, 0),
            "broker": leader,
            **({"headers": headers} if headers else {}),
            "key": _text(record.key),
            "payload": _text(record.value),
        }
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        line = text.encode(errors="surrogateescape") + b"\n"
        return shown_json(line) if self._is_terminal else line


def _end(position: Position) -> str:
    what = "stop timestamp for" if position.is_done else "end of"
    return f"Reached {what} topic {position.topic} [{position.index}] at offset {position.offset}"


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="surrogateescape")


def _format(options: Options) -> Render:
    """The function that prints a message."""
    text, key_delimiter, delimiter = options.format, options.key_delimiter, options.delimiter
    key_serdes, value_serdes = parse_serdes(options.serdes)
    safe = printable if sys.stdout.isatty() else bytes

    def shown(data: bytes) -> bytes:
        return NULL if options.null and not data else safe(data)

    if text is None:
        text = "%s"
        if key_delimiter is not None:
            text = f"%k{_literal(key_delimiter)}{text}"
            if options.show_offset:
                text = f"%o{_literal(key_delimiter)}{text}"
        text += _literal(delimiter)
    compiled = compile_format(text, shown, "ks")
    if key_serdes is None and value_serdes is None:
        return compiled

    def unpacked(partition: TopicPartition, record: Record) -> bytes:
        key, value = record.key, record.value
        if key_serdes is not None and key:
            key = key_serdes(key)
        if value_serdes is not None and value:
            value = value_serdes(value)
        changed = Record(record.offset, record.timestamp, key, value, record.headers, record.sequence)
        return compiled(partition, changed)

    return unpacked


def _literal(data: bytes) -> str:
    """Bytes as part of a format string."""
    return "".join(f"\\x{byte:02x}" for byte in data)
