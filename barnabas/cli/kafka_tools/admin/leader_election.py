"""kafka-leader-election: elect the preferred leaders of partitions, or leaders that are not in sync."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser
from barnabas.cli.kafka_tools.common import Failed, connect
from barnabas.cli.kafka_tools.errors import exception_of
from barnabas.client.admin.reassignments import Partition, election_results
from barnabas.wire.errors import ErrorCode

EXAMPLE = '{"partitions": [{"topic": "foo", "partition": 1}]}'
WHICH = ("topic", "all-topic-partitions", "path-to-json-file")
KINDS = {"preferred": 0, "unclean": 1}

PARSER = Parser(
    "kafka-leader-election",
    "This tool attempts to elect a new leader for a set of topic partitions.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("admin.config", "Kafka's old name of --command-config.", "FILE"),
        Option("election-type", "preferred: the first replica; unclean: any replica, if none is in sync.", "TYPE"),
        Option("topic", "The topic of --partition.", "TOPIC"),
        Option("partition", "The partition of --topic.", "PARTITION", "int"),
        Option("all-topic-partitions", "All partitions."),
        Option("path-to-json-file", f"File with partitions: {EXAMPLE}", "FILE"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(arguments)
    try:
        _elect(options)
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _elect(options: Options) -> None:
    _check(options)
    if options.has("admin.config") and not options.has("command-config"):
        options.values["command-config"] = options.values["admin.config"]
    kind = str(options.only("election-type"))
    if kind not in KINDS:
        raise Failed(f"Cannot parse argument '{kind}' of option election-type")
    with connect(options) as cluster:
        results = election_results(cluster, _partitions(options), KINDS[kind])
    elected = [partition for partition, error in results.items() if error is None]
    standing = [
        partition for partition, error in results.items() if error and error.code is ErrorCode.ELECTION_NOT_NEEDED
    ]
    if elected:
        print(f"Successfully completed leader election ({kind.upper()}) for partitions {_listed(elected)}")
    if standing:
        print(f"Valid replica already elected for partitions {_listed(standing)}")
    failed = {partition: error for partition, error in results.items() if error and partition not in standing}
    for (topic, index), error in failed.items():
        print(
            f"Error completing leader election ({kind.upper()}) for partition: {topic}-{index}: {exception_of(error)}"
        )
    if failed:
        raise Failed(f"{len(failed)} replica(s) could not be elected")


def _check(options: Options) -> None:
    """The texts of Kafka's `LeaderElectionCommandOptions.validate`."""
    missing = [name for name in ("bootstrap-server", "election-type") if not options.has(name)]
    if missing:
        raise Failed(f"Missing required option(s): {', '.join(missing)}")
    if sum(options.has(name) for name in WHICH) != 1:
        raise Failed(f"One and only one of the following options is required: {', '.join(WHICH)}")
    if options.has("topic") and not options.has("partition"):
        raise Failed("Missing required option(s): partition")
    if options.has("partition") and not options.has("topic"):
        raise Failed("Option partition is only allowed if topic is used")


def _partitions(options: Options) -> list[Partition] | None:
    """The partitions of the options; None for all."""
    if options.has("all-topic-partitions"):
        return None
    if options.has("topic"):
        return [(str(options.only("topic")), int(options.only("partition")))]
    try:
        content = json.loads(Path(str(options.only("path-to-json-file"))).read_text(encoding="utf-8"))
        partitions = [(str(entry["topic"]), int(entry["partition"])) for entry in content["partitions"]]
    except (KeyError, TypeError, ValueError) as error:
        raise Failed(f"Replica election data is not as in {EXAMPLE}: {error}") from None
    if len(set(partitions)) < len(partitions):
        raise Failed("Replica election data contains duplicate partitions")
    if not partitions:
        raise Failed("Replica election data is empty")
    return partitions


def _listed(partitions: Sequence[Partition]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in partitions)
