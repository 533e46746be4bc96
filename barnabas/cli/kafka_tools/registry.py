"""Kafka's tools by name. A tool's module is imported when it is called; neither click nor rich is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

TOOLS: dict[str, tuple[str, str]] = {
    "kafka-topics": ("admin.topics", "Create, delete, describe, list and change topics."),
    "kafka-console-producer": ("data.console_producer", "Send the lines of stdin."),
    "kafka-console-consumer": ("data.console_consumer", "Print records, alone or as a member of a group."),
    "kafka-consumer-groups": (
        "group.consumer_groups",
        "List, describe and delete consumer groups, reset their offsets.",
    ),
    "kafka-configs": ("admin.configs", "Show and change configs of topics, brokers and groups."),
    "kafka-client-metrics": ("admin.client_metrics", "Show and change which metrics clients push."),
    "kafka-acls": ("admin.acls", "Add, remove and list ACLs."),
    "kafka-delegation-tokens": ("admin.delegation_tokens", "Create, renew, expire and describe delegation tokens."),
    "kafka-share-groups": ("group.share_groups", "List, describe and delete share groups, reset their offsets."),
    "kafka-groups": ("group.groups", "List the groups of every type."),
    "kafka-get-offsets": ("data.get_offsets", "Offsets of partitions at a time."),
    "kafka-delete-records": ("data.delete_records", "Delete the records before offsets that a JSON file names."),
    "kafka-log-dirs": ("admin.log_dirs", "Log directories with the sizes of their partitions."),
    "kafka-transactions": ("admin.transactions", "List, describe and abort transactions, find hanging ones."),
    "kafka-features": ("admin.features", "Show and change the levels of features."),
    "kafka-cluster": ("admin.cluster", "The cluster's id, its brokers, and the APIs that they offer."),
    "kafka-leader-election": ("admin.leader_election", "Elect the preferred leaders of partitions, or unclean ones."),
    "kafka-metadata-quorum": ("admin.metadata_quorum", "The controllers, and the replicas of their log."),
    "kafka-reassign-partitions": ("admin.reassign_partitions", "Move partitions to other brokers."),
    "kafka-broker-api-versions": ("admin.broker_api_versions", "The APIs that each broker offers."),
    "kafka-producer-perf-test": ("data.producer_perf", "How fast records are sent and acknowledged."),
    "kafka-consumer-perf-test": ("data.consumer_perf", "How fast records are read."),
    "kafka-dump-log": ("data.dump_log", "Print the contents of segment files."),
}
"""The tool's module in this package, and one line about it."""

MISSING: dict[str, str] = {
    "kafka-replica-verification": "Kafka's own tool works against Barnabas",
    "kafka-streams-application-reset": "Kafka's own tool works against Barnabas",
    "kafka-storage": "use 'barnabas storage'; 'barnabas serve' formats a new data directory itself",
    "kafka-e2e-latency": "use 'barnabas perf latency'",
    "kafka-server-start": "use 'barnabas serve'",
    "kafka-server-stop": "stop 'barnabas serve' with Ctrl-C or SIGTERM",
}
"""Kafka's tools that are not here, and why."""


def run(name: str, arguments: Sequence[str]) -> int:
    """Run a tool; errors are printed as Kafka's tools do. Returns the exit code: 0, or 1 after any failure."""
    if name not in TOOLS:
        return _unknown(name)
    from barnabas.cli.kafka_tools.arguments import Leave, Usage

    try:
        code: int = import_module(f"barnabas.cli.kafka_tools.{TOOLS[name][0]}").main(arguments)
        sys.stdout.flush()
    except Leave as done:
        return done.code
    except Usage as mistake:
        print(f"{mistake}\n'barnabas {name} --help' lists the options.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of stdout was closed (`| head`): a new descriptor avoids an error message at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from barnabas.cli.kafka_tools.failure import sentence

        text = sentence(error)
        if text is None:
            raise
        print(f"Error: {text}", file=sys.stderr)
        return 1
    return code


def _unknown(name: str) -> int:
    if name in MISSING:
        print(f"barnabas: {name} is not available: {MISSING[name]}", file=sys.stderr)
        return 2
    from barnabas.terminal.suggestion import suggestion

    print(f"barnabas: no such command: {name}{suggestion(name, list(TOOLS))}", file=sys.stderr)
    return 2
