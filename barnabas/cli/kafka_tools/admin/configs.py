"""kafka-configs: show and change configs of topics, brokers, groups and client metrics.

Users, clients and ips are in `client_configs`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from barnabas.cli.kafka_tools.admin import client_configs
from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import connect, read_properties
from barnabas.cli.kafka_tools.errors import exception_of
from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.configs import (
    DELETE,
    SET,
    ConfigChange,
    alter_config,
    describe_config,
    list_config_resources,
)
from barnabas.client.admin.topics import all_topics
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import list_groups
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import DescribeConfigsResourceResult

PURPOSE = (
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics "
    "or group"
)
ENTITY_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
RESOURCES = ("topics", "brokers", "client-metrics", "groups")
"""The entity types that Barnabas has configs for."""
SHORT = {"topic": "topics", "broker": "brokers", "group": "groups", "client-metrics": "client-metrics"}
"""Options that name an entity."""
NOT_SERVED = ("broker-logger",)
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
OWN_SOURCE = {"topics": 1, "brokers": 2, "client-metrics": 7, "groups": 8}
DEFAULTS_SOURCE = 3
SEPARATOR = re.compile(r",(?=[^\]]*(?:\[|$))")
"""A comma that is not inside brackets."""

PARSER = Parser(
    "kafka-configs",
    PURPOSE,
    [
        BOOTSTRAP,
        Option("bootstrap-controller", "Not possible: Barnabas' controller is its broker.", "HOST:PORT"),
        COMMAND_CONFIG,
        Option("describe", "Show configs that were set."),
        Option("alter", "Change configs."),
        Option("all", "With --describe: all configs, also defaults."),
        Option("entity-type", f"One of {', '.join((*RESOURCES, *client_configs.TYPES))}.", "TYPE"),
        Option("entity-name", "The name of a topic, group, user ..., or the id of a broker.", "NAME"),
        Option("entity-default", "The defaults of all brokers, users, clients or ips."),
        Option("add-config", "key=value,key=[a,b]: configs to set.", "CONFIGS"),
        Option("add-config-file", "File of key=value lines to set.", "FILE"),
        Option("delete-config", "key,key: configs to reset.", "KEYS"),
        Option("force", "No effect: nothing is asked."),
        Option("topic", "The topic.", "TOPIC"),
        Option("broker", "The broker's id.", "ID"),
        Option("broker-defaults", "The defaults of all brokers."),
        Option("group", "The group.", "GROUP"),
        Option("client-metrics", "The client metrics subscription.", "NAME"),
        Option("user", "The user: quotas and SCRAM credentials.", "USER"),
        Option("client", "The client id: quotas.", "CLIENT-ID"),
        Option("ip", "The IP address: quotas.", "IP"),
        Option("user-defaults", "The quotas of all users without their own."),
        Option("client-defaults", "The quotas of all client ids without their own."),
        Option("ip-defaults", "The quotas of all addresses without their own."),
        *(Option(name, "Not served by Barnabas.", "NAME") for name in NOT_SERVED),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PURPOSE)
    options = PARSER.parse(arguments)
    _check_action(options)
    clients = client_configs.entities(options, arguments)
    kind, name = ("", None) if clients is not None else _entity(options)
    _check(options, kind, name, clients)
    try:
        with connect(options) as cluster:
            if clients is not None and options.has("describe"):
                client_configs.describe(cluster, clients)
            elif clients is not None:
                client_configs.alter(cluster, clients, _changes(options))
            elif options.has("describe"):
                _describe(cluster, options, kind, name)
            else:
                _alter(cluster, options, kind, name)
    except KafkaError as error:
        words = re.sub(r"(?<=password=)[^],]+", "(hidden)", " ".join(arguments))  # Kafka's tool shows it
        print(f"Error while executing config command with args '{words}'", file=sys.stderr)
        print(exception_of(error), file=sys.stderr)
        return 1
    return 0


# --- options


def _check_action(options: Options) -> None:
    if options.has("alter") == options.has("describe"):
        raise Usage("Command must include exactly one action: --describe, --alter")
    options.refuse_with("alter", ("all",))
    options.refuse_with("describe", ("add-config", "add-config-file", "delete-config"))


def _check(options: Options, kind: str, name: str | None, clients: client_configs.Entities | None) -> None:
    if not options.has("bootstrap-server", "bootstrap-controller"):
        raise Usage("Either --bootstrap-server or --bootstrap-controller must be specified.")
    if options.has("bootstrap-controller"):
        raise Usage(
            "--bootstrap-controller is not possible: Barnabas' controller is its broker, use --bootstrap-server"
        )
    if not options.has("alter"):
        return
    if clients is not None:
        client_configs.check_named(clients)
    elif name is None:
        raise Usage(f"An entity name must be specified with --alter of {kind}")
    if not options.has("add-config", "add-config-file", "delete-config"):
        needed = "--add-config, --add-config-file, or --delete-config"
        raise Usage(f"At least one of {needed} must be specified with --alter")
    if options.has("add-config") and options.has("add-config-file"):
        raise Usage("Only one of --add-config or --add-config-file must be specified")


def _entity(options: Options) -> tuple[str, str | None]:
    """The entity type and name; the name "" is that of brokers' defaults, None are all entities."""
    for option in NOT_SERVED:
        if options.has(option):
            raise Usage(_not_served(f"--{option}"))
    named = [(SHORT[option], str(options.only(option))) for option in SHORT if options.has(option)]
    if options.has("broker-defaults"):
        named.append(("brokers", ""))
    if options.has("entity-type"):
        kind = str(options.only("entity-type"))
        if kind not in ENTITY_TYPES:
            known = f"the entity type must be one of {', '.join(ENTITY_TYPES)}"
            raise Usage(
                f"Invalid entity type {kind}, {known} with a --bootstrap-server or --bootstrap-controller argument"
            )
        if kind not in RESOURCES:
            raise Usage(_not_served(kind))
        named.append((kind, "" if options.has("entity-default") else options.only("entity-name")))
    if not named:
        raise Usage("At least one entity type must be specified")
    if len(named) > 1:
        raise Usage("Only one entity may be named")
    if named[0][0] != "brokers" and named[0][1] == "":
        raise Usage(f"{named[0][0]} have no defaults, only brokers do")
    return named[0]


def _not_served(what: str) -> str:
    return f"{what} is not possible: Barnabas has no loggers of brokers"


# --- describe


def _describe(cluster: Cluster, options: Options, kind: str, name: str | None) -> None:
    names = [name] if name is not None else _all_names(cluster, kind)
    for each in names:
        if name is not None and each and not _exists(cluster, kind, each):
            print(f"The {_singular(kind)} '{each}' doesn't exist and doesn't have dynamic config.")
            continue
        _describe_one(cluster, kind, each, shows_all=options.has("all"))


def _singular(kind: str) -> str:
    return kind if kind == "client-metrics" else kind.removesuffix("s")


def _all_names(cluster: Cluster, kind: str) -> list[str]:
    if kind == "topics":
        return [topic.name or "" for topic in all_topics(cluster)]
    if kind == "brokers":
        return [*(str(broker.broker_id) for broker in describe_cluster(cluster, with_fenced=False).brokers), ""]
    return list_config_resources(cluster, _singular(kind))


def _exists(cluster: Cluster, kind: str, name: str) -> bool:
    if kind != "groups":
        return name in _all_names(cluster, kind)
    return name in _all_names(cluster, kind) or any(group.group_id == name for group in list_groups(cluster))


def _describe_one(cluster: Cluster, kind: str, name: str, *, shows_all: bool) -> None:
    entries = describe_config(cluster, _singular(kind), name, synonyms=True)
    source = OWN_SOURCE[kind] if name else DEFAULTS_SOURCE
    if not shows_all:
        entries = [entry for entry in entries if entry.config_source == source]
    if name:
        print(f"{'All' if shows_all else 'Dynamic'} configs for {_singular(kind)} {name} are:")
    else:
        print(f"Default configs for {kind} in the cluster are:")
    for entry in entries:
        print(f"  {_line(entry)}")


def _line(entry: DescribeConfigsResourceResult) -> str:
    synonyms = ", ".join(
        f"{SOURCES.get(synonym.source, 'UNKNOWN')}:{synonym.name}={_value(synonym.value)}" for synonym in entry.synonyms
    )
    return f"{entry.name}={_value(entry.value)} sensitive={str(entry.is_sensitive).lower()} synonyms={{{synonyms}}}"


def _value(text: str | None) -> str:
    return "null" if text is None else text


# --- alter


def _alter(cluster: Cluster, options: Options, kind: str, name: str | None) -> None:
    assert name is not None
    changes = _changes(options)
    alterations = [ConfigChange(key, DELETE if value is None else SET, value) for key, value in changes.items()]
    alter_config(cluster, _singular(kind), name, alterations)
    if name:
        print(f"Completed updating config for {_singular(kind)} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _changes(options: Options) -> dict[str, str | None]:
    """The new values of keys; None for a key that is deleted."""
    changes: dict[str, str | None] = {}
    if options.has("add-config-file"):
        changes |= read_properties(options.only("add-config-file"))
    for text in SEPARATOR.split(options.only("add-config") or ""):
        if text.strip():
            key, value = _pair(text)
            changes[key] = value
    for key in (options.only("delete-config") or "").split(","):
        if key.strip():
            changes[key.strip()] = None
    return changes


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        form = '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
        raise Usage(f"requirement failed: Invalid entity config: all configs to be added must be in the format {form}")
    return key.strip(), value.strip().removeprefix("[").removesuffix("]")
