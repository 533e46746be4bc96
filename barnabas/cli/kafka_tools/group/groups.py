"""kafka-groups: list the groups of every type."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import connect, padded
from barnabas.client.groups.consumer_groups import list_groups

TYPES = ("classic", "consumer", "share", "streams")

PARSER = Parser(
    "kafka-groups",
    "This tool helps to list groups of all types.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("list", "List the groups."),
        Option("group-type", f"Only groups of this type: {', '.join(TYPES)}.", "TYPE"),
        Option("protocol", "Only groups with this protocol type.", "PROTOCOL"),
        Option("consumer", "Only groups of consumers, classic ones included."),
        Option("share", "Only share groups."),
        Option("streams", "Only streams groups."),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(arguments)
    _check(options)
    with connect(options) as cluster:
        groups = list_groups(cluster)
    kind, protocol = (options.only("group-type") or "").lower() or None, options.only("protocol")
    rows = [("GROUP", "TYPE", "PROTOCOL")]
    for listed in groups:
        is_chosen = kind in {None, listed.group_type.lower()} and protocol in {None, listed.protocol_type}
        if is_chosen and _is_selected(options, listed.group_type.lower(), listed.protocol_type):
            rows.append((listed.group_id, listed.group_type.capitalize(), listed.protocol_type))
    widths = (max(20, *(len(group) for group, _, _ in rows)), 20, 20)
    for row in rows:
        print(padded(row, widths))
    return 0


def _check(options: Options) -> None:
    if not options.has("bootstrap-server"):
        raise Usage("Missing required option(s) [bootstrap-server]")
    if not options.has("list"):
        raise Usage("Command must include exactly one action: --list.")
    options.refuse_with("consumer", ("share", "streams", "group-type", "protocol"))
    options.refuse_with("share", ("consumer", "streams", "group-type", "protocol"))
    options.refuse_with("streams", ("consumer", "share", "group-type", "protocol"))
    if options.has("group-type") and options.only("group-type").lower() not in TYPES:
        raise Usage("--group-type must be a valid group type.")


def _is_selected(options: Options, kind: str, protocol: str) -> bool:
    if options.has("consumer"):
        return kind == "consumer" or (kind == "classic" and protocol in {"", "consumer"})
    if options.has("share"):
        return kind == "share"
    return kind == "streams" if options.has("streams") else True
