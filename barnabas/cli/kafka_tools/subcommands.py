"""Tools with subcommands, whose options Kafka parses with argparse4j: errors are `usage: …` and `TOOL: error: …`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from barnabas.cli.kafka_tools.arguments import Leave, Usage
from barnabas.cli.kafka_tools.common import ACTED_ON, connect_to, read_properties, warn_of_unused
from barnabas.client.cluster import Cluster


class ToolParser(argparse.ArgumentParser):
    """An argument parser whose errors have exit code 1, as in Kafka's tools."""

    def __init__(self, *args: object, **settings: object) -> None:
        settings["allow_abbrev"] = False
        super().__init__(*args, **settings)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message."""
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        raise Leave(1)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End the tool, after `--help`."""
        if message:
            print(message, end="", file=sys.stderr)
        raise Leave(status)


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add `--bootstrap-server` and `--command-config`."""
    default = os.environ.get("BARNABAS_BOOTSTRAP_SERVERS")
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=default,
        required=default is None,
        help="The brokers to connect to.",
    )
    parser.add_argument("--command-config", metavar="FILE", help="File with configuration of the client.")


def connect(args: argparse.Namespace) -> Cluster:
    """A client for the options that `add_server` added."""
    config = read_properties(args.command_config) if args.command_config else {}
    warn_of_unused(config, ACTED_ON)
    if not args.bootstrap_server:
        raise Usage("--bootstrap-server must be specified")
    return connect_to(args.bootstrap_server, config)


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their longest cell, separated by tabs."""
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        print("\t".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))
