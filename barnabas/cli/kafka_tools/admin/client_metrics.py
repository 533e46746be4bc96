"""kafka-client-metrics: show and change which metrics clients push (KIP-714)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import connect
from barnabas.cli.kafka_tools.errors import text_of
from barnabas.client.admin.configs import (
    DELETE,
    SET,
    ConfigChange,
    alter_config,
    describe_config,
    list_config_resources,
)
from barnabas.client.cluster import Cluster
from barnabas.wire.errors import KafkaError
from barnabas.wire.types import uuid_to_text

PURPOSE = "This tool helps to manipulate and describe client metrics configurations."
ACTIONS = ("alter", "delete", "describe", "list")
CONFIGS = {"interval": "interval.ms", "metrics": "metrics", "match": "match"}
"""The config of an option; an empty value resets it."""
KIND = "client-metrics"

PARSER = Parser(
    "kafka-client-metrics",
    PURPOSE,
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("alter", "Change a subscription, or make one."),
        Option("delete", "Delete a subscription."),
        Option("describe", "Show a subscription, or all."),
        Option("list", "List the names of subscriptions."),
        Option("name", "The name of the subscription.", "NAME"),
        Option("generate-name", "Use a random name."),
        Option("interval", "Milliseconds between two pushes of a client.", "MS"),
        Option(
            "match",
            "Which clients it is for: client_id, client_instance_id, client_software_name, client_software_version, "
            "client_source_address and client_source_port, with regular expressions.",
            "NAME=REGEX,NAME=REGEX",
        ),
        Option("metrics", "Prefixes of the names of metrics; * is all.", "PREFIX,PREFIX"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PURPOSE)
    options = PARSER.parse(arguments)
    _check(options)
    try:
        with connect(options) as cluster:
            _run(cluster, options)
    except KafkaError as error:
        print(f"Error while executing client metrics command : {text_of(error)}")
        return 1
    return 0


def _run(cluster: Cluster, options: Options) -> None:
    if options.has("alter"):
        _alter(cluster, options)
    elif options.has("describe"):
        _describe(cluster, options.only("name"))
    elif options.has("delete"):
        _delete(cluster, options.only("name"))
    else:
        print("\n".join(_names(cluster)))


def _check(options: Options) -> None:
    """The checks of Kafka's tool, in its order."""
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise Usage("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if not options.has("bootstrap-server"):
        raise Usage("--bootstrap-server must be specified.")
    changes = ("generate-name", "interval", "match", "metrics")
    options.refuse_with("delete", changes)
    options.refuse_with("describe", changes)
    options.refuse_with("list", ("name", *changes))
    if options.has("alter") and options.has("name") == options.has("generate-name"):
        raise Usage("One of --name or --generate-name must be specified with --alter.")
    if options.has("delete") and not options.has("name"):
        raise Usage("A client metrics resource name must be specified with --delete.")
    interval = options.only("interval")
    if interval:
        try:
            int(interval)
        except ValueError:
            raise Usage("Invalid interval value. Enter an integer, or leave empty to reset.") from None


def _names(cluster: Cluster) -> list[str]:
    return list_config_resources(cluster, KIND)


def _alter(cluster: Cluster, options: Options) -> None:
    name = options.only("name") if options.has("name") else uuid_to_text(_random_uuid())
    changes = []
    for option, key in CONFIGS.items():
        if options.has(option):
            value = options.only(option)
            changes.append(ConfigChange(key, SET, value) if value else ConfigChange(key, DELETE, None))
    alter_config(cluster, KIND, name, changes)
    print(f"Altered client metrics config for {name}.")


def _random_uuid() -> bytes:
    """A random id whose text does not begin with a dash, as Kafka's."""
    while (data := os.urandom(16))[0] >> 2 == 62:
        pass
    return data


def _describe(cluster: Cluster, name: str | None) -> None:
    names = _names(cluster)
    if name is not None and name not in names:
        print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    for subscription in names if name is None else [name]:
        print(f"Client metrics configs for {subscription} are:")
        for entry in describe_config(cluster, KIND, subscription):
            print(f"  {entry.name}={entry.value}")


def _delete(cluster: Cluster, name: str) -> None:
    alter_config(cluster, KIND, name, [ConfigChange(key, DELETE, None) for key in sorted(CONFIGS.values())])
    print(f"Deleted client metrics config for {name}.")
