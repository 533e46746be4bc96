"""kafka-dump-log: `barnabas dump-log` with the options of Kafka's tool. It reads files, not a broker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.files.dump_log import dump_log
from barnabas.cli.kafka_tools.arguments import Option, Parser, Usage

FLAGS = (
    "deep-iteration",
    "print-data-log",
    "skip-record-metadata",
    "index-sanity-check",
    "verify-index-only",
    "offsets-decoder",
    "transaction-log-decoder",
    "share-group-state-decoder",
    "cluster-metadata-decoder",
)
DECODER = "kafka.serializer.StringDecoder"

PARSER = Parser(
    "kafka-dump-log",
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment.",
    [
        Option("files", "Segments, indexes and snapshots, separated by commas.", "FILES"),
        Option("deep-iteration", "Print each record; always so, as in Kafka."),
        Option("print-data-log", "Print keys and values."),
        Option("skip-record-metadata", "Print only keys and values of records."),
        Option("index-sanity-check", "Only check whether a broker would rebuild the indexes."),
        Option("verify-index-only", "Check indexes without printing them."),
        Option("max-bytes", "Bytes of each segment to read.", "BYTES", "int"),
        Option("offsets-decoder", "Decode records of __consumer_offsets."),
        Option("transaction-log-decoder", "Decode records of __transaction_state."),
        Option("share-group-state-decoder", "Decode records of __share_group_state."),
        Option("cluster-metadata-decoder", "Decode records of __cluster_metadata."),
        Option("value-decoder-class", "Only StringDecoder, the default.", "CLASS", default=DECODER),
        Option("key-decoder-class", "Only StringDecoder, the default.", "CLASS", default=DECODER),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    import click

    if not arguments:
        raise Usage(PARSER.purpose)
    options = PARSER.parse(arguments)
    options.require("files")
    for name in ("value-decoder-class", "key-decoder-class"):
        if options.only(name).rpartition(".")[2] != "StringDecoder":
            raise Usage(f"--{name} {options.only(name)}: Barnabas runs no Java classes, only StringDecoder")
    words = [f"--{name}" for name in FLAGS if options.has(name)]
    if options.has("max-bytes"):
        words += ["--max-bytes", str(options.only("max-bytes"))]
    for file in options.only("files").split(","):
        if not Path(file).exists():
            print(f"Dumping {file}")
            print(f"{file} does not exist", file=sys.stderr)
            return 1
        try:
            with dump_log.make_context("kafka-dump-log", [*words, "--files", file]) as context:
                dump_log.invoke(context)
        except click.ClickException as error:
            raise Usage(error.format_message()) from None
    return 0
