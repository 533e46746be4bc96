"""kafka-log-dirs: log directories with the sizes of their partitions, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Parser, Usage
from barnabas.cli.kafka_tools.common import connect
from barnabas.cli.kafka_tools.errors import exception_of
from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.log_dirs import broker_log_dirs
from barnabas.client.errors import error_for
from barnabas.wire.messages.log_dirs import DescribeLogDirsResult

PARSER = Parser(
    "kafka-log-dirs",
    "This tool helps to query log directory usage on the specified brokers.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("describe", "Show the log directories."),
        Option("topic-list", "Only these topics, separated by commas.", "TOPICS", default=""),
        Option("broker-list", "Only these brokers, separated by commas.", "IDS"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PARSER.purpose)
    options = PARSER.parse(arguments)
    options.require("bootstrap-server", "describe")
    topics = [topic for topic in options.only("topic-list").split(",") if topic]
    with connect(options) as cluster:
        known = sorted(broker.broker_id for broker in describe_cluster(cluster, with_fenced=False).brokers)
        chosen = _numbers(options.only("broker-list")) or known
        missing = [str(broker) for broker in chosen if broker not in known]
        if missing:
            existing = ",".join(map(str, known))
            what = f"The given brokers do not exist from --broker-list: {','.join(missing)}"
            print(f"ERROR: {what}. Current existent brokers: {existing}", file=sys.stderr)
            return 1
        print("Querying brokers for log directories information")
        reports = [{"broker": broker, "logDirs": _dirs(broker_log_dirs(cluster, broker, topics))} for broker in chosen]
    print(f"Received log directory information from brokers {','.join(map(str, chosen))}")
    print(json.dumps({"brokers": reports, "version": 1}, separators=(",", ":"), ensure_ascii=False))
    return 0


def _numbers(text: str | None) -> list[int]:
    words = [word for word in (text or "").split(",") if word]
    if not all(word.strip().isdigit() for word in words):
        raise Usage(f"--broker-list has ids of brokers separated by commas, not {text}")
    return [int(word) for word in words]


def _dirs(results: Sequence[DescribeLogDirsResult]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for result in results:
        error = error_for(result.error_code, "log directories")
        partitions = [
            {
                "partition": f"{topic.name}-{partition.partition_index}",
                "size": partition.partition_size,
                "offsetLag": partition.offset_lag,
                "isFuture": partition.is_future_key,
            }
            for topic in result.topics
            for partition in topic.partitions
        ]
        text = None if error is None else exception_of(error)
        rows.append({"partitions": partitions, "error": text, "logDir": result.log_dir})
    return rows
