"""The options of `barnabas cat`: those of kcat 1.7 that are served. Others are refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from barnabas.cli.cat.options import Options
from barnabas.cli.cat.properties import read_properties
from barnabas.cli.options.parameters import address_option

MODES = {"C": "consume", "P": "produce", "L": "metadata", "Q": "query"}
NOT_SERVED = {
    "-E": "it ends with the first error that cannot be retried",
    "-v": "",
    "-d": "it has no librdkafka; `barnabas serve --log-level DEBUG` shows the broker's side",
    "-r": "there is no schema registry",
    "-U": "",
}


def _refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:  # noqa: ARG001 (click's signature)
    if value:
        option = param.opts[0]
        why = f": {NOT_SERVED[option]}" if NOT_SERVED[option] else ""
        raise click.UsageError(f"kcat's {option} is not served{why}")


def _modes(command: click.Command) -> click.Command:
    for letter, name in MODES.items():
        command.params.append(click.Option([f"-{letter}", f"mode_{name}"], is_flag=True, help=f"Mode: {name}."))
    for option in NOT_SERVED:
        is_flag = option in ("-E", "-v", "-U")
        name = f"refused_{option[1:].lower()}_{'u' if option.isupper() else 'l'}"
        command.params.append(
            click.Option([option, name], is_flag=is_flag, hidden=True, callback=_refuse, expose_value=False)
        )
    return command


EPILOG = (
    "Modes: -C consumes, -P produces, -L lists metadata, -Q queries offsets, -G GROUP joins a group; without one, -P "
    "if stdin is no terminal, otherwise -C. Format verbs of -f: %s value, %k key, %S and %K their lengths, %R the "
    "length as binary int32, %T timestamp, %h headers, %t topic, %p partition, %o offset. Not served: "
    f"{', '.join(NOT_SERVED)}, offsets stored without a group, and most properties (-X list). Exit codes and errors "
    "are the same as of other commands."
)


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="[FILE|TOPIC]...")
@click.option("-G", "group", metavar="GROUP", help="Mode: member of a group; subscribes to the TOPICs, ^REGEX too.")
@click.option("-t", "topics", multiple=True, metavar="TOPIC", help="The topic; with -Q: TOPIC:PARTITION:TIMESTAMP.")
@click.option("-p", "partition", type=click.IntRange(min=-1), metavar="N", help="The partition; -1: any.")
@click.option("-D", "delimiter", metavar="TEXT", default="\\n", show_default=True, help="Delimiter between messages.")
@click.option("-K", "key_delimiter", metavar="TEXT", help="Delimiter between key and value.")
@click.option("-k", "key", metavar="TEXT", help="-P: the key of all messages.")
@click.option("-H", "headers", multiple=True, metavar="NAME=VALUE", help="-P: a header; a NAME alone has a null value.")
@click.option("-z", "compression", metavar="CODEC", help="-P: none, gzip, snappy, lz4 or zstd.")
@click.option("-l", "lines", is_flag=True, help="-P: send the messages of FILE, not FILE as one message.")
@click.option("-T", "tee", is_flag=True, help="-P: print the sent messages.")
@click.option("-c", "count", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option("-Z", "null", is_flag=True, help="-P: empty is null. -C: null and empty are printed as NULL.")
@click.option(
    "-o", "offsets", multiple=True, metavar="OFFSET", help="-C: beginning, end, N, -N, s@MS (from) and e@MS (to)."
)
@click.option("-e", "exit_at_end", is_flag=True, help="-C: stop at the end of all partitions.")
@click.option("-f", "format_", metavar="FORMAT", help="-C: format of a message.")
@click.option("-J", "as_json", is_flag=True, help="-C, -L, -Q: JSON.")
@click.option("-s", "serdes", multiple=True, metavar="[key=|value=]PACK", help="-C: unpack by <>bBhHiIqQcs$.")
@click.option("-O", "show_offset", is_flag=True, help="-C: print the offset before the key (needs -K).")
@click.option("-u", "unbuffered", is_flag=True, help="-C: print each message at once.")
@click.option("-q", "quiet", is_flag=True, help="No notes on stderr.")
@click.option(
    "-m",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long requests are tried.",
)
@click.option(
    "-F",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file of properties.",
)
@click.option("-X", "properties", multiple=True, metavar="NAME=VALUE", help="A property of librdkafka; 'list' lists.")
@click.version_option(None, "-V", package_name="barnabas", message="barnabas cat %(version)s, as kcat 1.7")
@address_option
def cat(bootstrap: str, file: Path | None, properties: tuple[str, ...], **flags: object) -> None:
    """Work as kcat does, with its options: consume, produce, list metadata, query offsets."""
    options = Options(bootstrap, read_properties(file, properties), flags)
    mode = _mode(flags, options)
    if mode == "metadata":
        from barnabas.cli.cat.listing import list_metadata

        list_metadata(options)
    elif mode == "query":
        from barnabas.cli.cat.listing import query_offsets

        query_offsets(options)
    elif mode == "produce":
        from barnabas.cli.cat.produce import produce

        produce(options)
    else:
        from barnabas.cli.cat.consume import consume

        consume(options)


def _mode(flags: dict[str, object], options: Options) -> str:
    chosen = [name for name in MODES.values() if flags[f"mode_{name}"]]
    if options.group is not None:
        chosen.append("group")
    if len(chosen) > 1:
        raise click.UsageError("only one of -C, -P, -L, -Q and -G can be given")
    if chosen:
        return chosen[0]
    mode = "consume" if sys.stdin.isatty() else "produce"
    options.note(f"Auto-selecting {'Consumer' if mode == 'consume' else 'Producer'} mode (use -P or -C to override)")
    return mode


_modes(cat)
