"""`barnabas consume`: prints records with a format string or as JSON lines.

Without `-g` it reads without joining a group and commits no offsets. With `-g` it is a member of that group.
"""

from __future__ import annotations

import sys

import click

from barnabas.cli.connect.settings import setting
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.escapes import compile_format, printable
from barnabas.cli.options.offset_spec import parse_range
from barnabas.cli.options.parameters import bootstrap_option, connect, isolation_option
from barnabas.cli.options.regex import compile_regex
from barnabas.cli.records.consume_run import Limits, Matches, Render, Run
from barnabas.cli.records.consume_source import Selection, Source, find_partitions, group_source, plain_source
from barnabas.client.offsets import TopicPartition
from barnabas.client.positions import OffsetSpec
from barnabas.client.records.expression import Filter
from barnabas.client.records.record_json import json_line, shown_json
from barnabas.terminal.notes import note
from barnabas.wire.batches.records import Record

DEFAULT_FORMAT = r"%v\n"


@click.command(
    epilog="Format verbs: %t topic, %p partition, %o offset, %k key, %v or %s value, %h headers, %T or %d timestamp in "
    "ms, %K and %S bytes of key and value, %R the latter as binary int32, %% a percent sign; \\n \\t \\r \\0 \\xNN. "
    "A filter expression has the names topic, partition, offset, timestamp, key, value (parsed where it is JSON), text "
    "(the value as text) and headers, as in \"value.amount > 100 and key == 'a'\" or \"matches(text, 'err.*7')\"."
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-o",
    "--offset",
    metavar="FROM[:TO]",
    help="beginning, end, an offset, -N (the last N of each partition), @TIME; ':end' stops at the current end. With "
    "-g: where partitions without a committed offset begin, beginning or end. [default: beginning]",
)
@click.option("-p", "--partition", "indexes", multiple=True, type=click.IntRange(min=0), help="[default: all]")
@click.option("-r", "--regex", is_flag=True, help="TOPICs are regular expressions; so is one that starts with '^'.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="Stop at the current end of the partitions.")
@click.option("-g", "--group", metavar="GROUP", help="Join this consumer group and commit offsets.")
@click.option("--instance-id", metavar="ID", help="With -g: be the static member of this name (KIP-345).")
@click.option("-f", "--format", "format_", metavar="FORMAT", help=f"Format of a record. [default: {DEFAULT_FORMAT}]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line; `produce --json` reads them.")
@click.option("--grep", "pattern", metavar="REGEX", help="Only records with a match in key or value (RE2).")
@click.option("-v", "--invert", is_flag=True, help="With --grep: only records without a match.")
@click.option("--filter", "expression", metavar="EXPRESSION", help="Only records for which it is true; see below.")
@isolation_option
@click.option(
    "--idle", "idle_s", type=Duration(), metavar="TIME", help="Stop when no record came for this time, as 2s."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(),
    metavar="TIME",
    help="Stop after this time in all; exit code 4 if -n, -e or ':TO' was not reached by then.",
)
@click.option("-q", "--quiet", is_flag=True, help="No notes, no progress and no summary on stderr.")
@bootstrap_option
def consume(
    topics: tuple[str, ...],
    offset: str | None,
    indexes: tuple[int, ...],
    regex: bool,
    count: int | None,
    exit_at_end: bool,
    group: str | None,
    instance_id: str | None,
    format_: str | None,
    as_json: bool,
    pattern: str | None,
    invert: bool,
    expression: str | None,
    isolation: str,
    idle_s: float | None,
    timeout_s: float | None,
    quiet: bool,
    bootstrap: str,
) -> None:
    """Read records of TOPICs, and follow them until an end is asked for (-n, -e, --idle, --timeout) or Ctrl-C."""
    render = _render(as_json, format_)
    matches, expression_filter = _matches(pattern, invert, expression)
    start, end = parse_range("beginning" if offset is None else offset, "-o")
    if exit_at_end and end is None:
        end = OffsetSpec("end")
    limits = Limits(count, idle_s, timeout_s, has_end=end is not None)  # the time begins now
    note = _silent if quiet else _note
    patience_s = float(setting("timeout"))
    patience_s = patience_s if timeout_s is None else min(patience_s, timeout_s)
    with connect(bootstrap, patience_s) as cluster:
        selection = Selection(start, end, isolation == "read_committed", note)
        if group is None:
            if instance_id is not None:
                raise click.UsageError("--instance-id is for a member of a group; give -g GROUP too")
            partitions = find_partitions(cluster, topics, indexes, regex)
            source: Source = plain_source(cluster, partitions, selection)
        else:
            if indexes:
                raise click.UsageError("-p and -g exclude each other: a group distributes the partitions itself")
            source = group_source(cluster, connect(bootstrap, patience_s), topics, regex, selection, group, instance_id)
        Run(source, render, limits, matches, expression_filter, note, quiet=quiet).run()


def _render(as_json: bool, format_: str | None) -> Render:
    if as_json and format_ is not None:
        raise click.UsageError("--json and --format exclude each other; give one of them")
    if as_json:
        if sys.stdout.isatty():
            return lambda partition, record: shown_json(json_line(partition, record))
        return json_line
    show = printable if sys.stdout.isatty() else None
    return compile_format(DEFAULT_FORMAT if format_ is None else format_, show)


def _matches(pattern: str | None, invert: bool, expression: str | None) -> tuple[list[Matches], Filter | None]:
    if pattern is None and expression is None:
        if invert:
            raise click.UsageError("-v inverts --grep; give --grep REGEX too")
        return [], None
    matches: list[Matches] = []
    if pattern is not None:
        matches.append(_grep(pattern, invert))
    elif invert:
        raise click.UsageError("-v inverts --grep; give --grep REGEX too")
    expression_filter = None if expression is None else _filter(expression)
    if expression_filter is not None:
        matches.append(expression_filter)
    return matches, expression_filter


def _grep(pattern: str, invert: bool) -> Matches:
    """True for records whose key or value has a match; with `invert` for the others."""
    search = compile_regex(pattern, "--grep").search

    def matches(_partition: TopicPartition, record: Record) -> bool:
        matches = any(text is not None and search(text) is not None for text in (record.value, record.key))
        return matches is not invert

    return matches


def _filter(expression: str) -> Filter:
    try:
        return Filter(expression)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--filter") from None


def _note(sentence: str) -> None:
    note(f"barnabas: {sentence}")


def _silent(sentence: str) -> None:
    """Print no notes."""
