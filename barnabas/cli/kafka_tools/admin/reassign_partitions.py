"""kafka-reassign-partitions: move partitions to other brokers, by a plan in a JSON file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import randrange
from typing import Any

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import Failed, connect
from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.configs import DELETE, SET, ConfigChange, alter_config
from barnabas.client.admin.reassignments import Partition, ongoing, reassign
from barnabas.client.admin.topics import describe_topics
from barnabas.client.cluster import Cluster
from barnabas.coord.cluster.changes.placement import ReplicaPlacer, UsableBroker

Plan = dict["Partition", list[int]]
ACTIONS = ("cancel", "execute", "generate", "list", "verify")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
EXAMPLE = '{"partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2, 3]}], "version": 1}'

PARSER = Parser(
    "kafka-reassign-partitions",
    "This tool helps to move topic partitions between replicas.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("verify", "Whether the reassignment of the file is complete; removes throttles if it is."),
        Option("execute", "Begin the reassignment of the file."),
        Option("cancel", "Cancel the reassignment of the file."),
        Option("generate", "Make a plan for the topics of a file over these brokers."),
        Option("list", "List the reassignments that are going on."),
        Option("reassignment-json-file", f"The plan: {EXAMPLE}", "FILE"),
        Option("topics-to-move-json-file", 'The topics: {"topics": [{"topic": "foo"}], "version": 1}', "FILE"),
        Option("broker-list", "With --generate: the brokers, separated by commas.", "BROKERS"),
        Option("disable-rack-aware", "With --generate: do not spread replicas over racks."),
        Option("throttle", "With --execute: limit of the movement, bytes a second and broker.", "RATE", "long"),
        Option("preserve-throttles", "Do not change broker or topic throttles."),
        Option("additional", "With --execute: also if reassignments are going on."),
        Option("timeout", "Kept for scripts: directories are not moved here.", "MILLISECONDS", "long"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(arguments)
    action = _check(options)
    try:
        with connect(options) as cluster:
            ACTION[action](cluster, options)
    except Failed as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _check(options: Options) -> str:
    actions = [action for action in ACTIONS if options.has(action)]
    if len(actions) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS)
        raise Usage(f"Command must include exactly one action: {listed}")
    options.require("bootstrap-server")
    if actions[0] == "generate":
        options.require("broker-list", "topics-to-move-json-file")
    elif actions[0] != "list":
        options.require("reassignment-json-file")
    return actions[0]


# --- actions


def _list(cluster: Cluster, options: Options) -> None:  # noqa: ARG001 - as the others
    reassignments = ongoing(cluster)
    if not reassignments:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for (topic, index), state in sorted(reassignments.items()):
        text = f"{topic}-{index}: replicas: {_ids(state.replicas)}."
        text += f" adding: {_ids(state.adding)}." if state.adding else ""
        text += f" removing: {_ids(state.removing)}." if state.removing else ""
        print(text)


def _execute(cluster: Cluster, options: Options) -> None:
    plan = _plan(options)
    going_on = ongoing(cluster)
    if going_on and not options.has("additional"):
        raise Failed(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
            "create a new partition assignment in addition to the existing one. The --additional flag can also be used "
            "to change the throttle by resubmitting the current reassignment."
        )
    current = _current(cluster, plan)
    print(f"Current partition replica assignment\n\n{_json(current)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    if options.has("throttle"):
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
            "removed."
        )
        _set_throttles(cluster, current, plan, int(options.only("throttle")))
        print(f"The inter-broker throttle limit was set to {options.only('throttle')} B/s")
    reassign(cluster, plan)
    print(f"Successfully started partition reassignment{_s(plan)} for {_listed(plan, ',')}")


def _verify(cluster: Cluster, options: Options) -> None:
    plan = _plan(options)
    going_on = ongoing(cluster)
    current = _current(cluster, plan)
    print("Status of partition reassignment:")
    for partition, replicas in sorted(plan.items()):
        name = f"{partition[0]}-{partition[1]}"
        if partition in going_on:
            print(f"Reassignment of partition {name} is still in progress.")
        elif current[partition] == replicas:
            print(f"Reassignment of partition {name} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {name}, but replica set is "
                f"{_ids(current[partition])} rather than {_ids(replicas)}."
            )
    print()
    if not going_on and not options.has("preserve-throttles"):
        _clear_throttles(cluster, plan)


def _cancel(cluster: Cluster, options: Options) -> None:
    plan = _plan(options)
    active = sorted(partition for partition in ongoing(cluster) if partition in plan)
    if active:
        reassign(cluster, dict.fromkeys(active))
        print(f"Successfully cancelled partition reassignment{_s(active)} for: {_listed(active, ',')}")
    else:
        print("None of the specified partition reassignments are active.")
    print("None of the specified partition moves are active.")
    if not options.has("preserve-throttles"):
        _clear_throttles(cluster, plan)


def _clear_throttles(cluster: Cluster, plan: Plan) -> None:
    topics = sorted({topic for topic, _ in plan})
    brokers = _remove_throttles(cluster, topics)
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_ids(brokers)}")
    print(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")


def _generate(cluster: Cluster, options: Options) -> None:
    brokers = _broker_ids(str(options.only("broker-list")))
    content = _read(str(options.only("topics-to-move-json-file")))
    try:
        names = [str(topic["topic"]) for topic in content["topics"]]
    except (KeyError, TypeError):
        raise Failed("Failed to parse the topics to move") from None
    racks = {broker.broker_id: broker.rack for broker in describe_cluster(cluster).brokers}
    missing = [broker for broker in brokers if broker not in racks]
    if missing:
        raise Failed(f"Unknown broker id(s) {_ids(missing)}")
    current: Plan = {}
    proposed: Plan = {}
    usable = [UsableBroker(broker, None if options.has("disable-rack-aware") else racks[broker]) for broker in brokers]
    for topic in describe_topics(cluster, names):
        name = topic.name or ""
        placer = ReplicaPlacer(usable, randrange(len(usable)))
        factor = len(topic.partitions[0].replica_nodes)
        placer.check(factor)
        for partition in topic.partitions:
            current[name, partition.partition_index] = list(partition.replica_nodes)
            proposed[name, partition.partition_index] = placer.place(factor)
    print(f"Current partition replica assignment\n{_json(current)}\n")
    print(f"Proposed partition reassignment configuration\n{_json(proposed)}")


ACTION = {"list": _list, "execute": _execute, "verify": _verify, "cancel": _cancel, "generate": _generate}


# --- plans


def _plan(options: Options) -> Plan:
    content = _read(str(options.only("reassignment-json-file")))
    try:
        entries = [
            ((str(entry["topic"]), int(entry["partition"])), [int(broker) for broker in entry["replicas"]])
            for entry in content["partitions"]
        ]
    except (KeyError, TypeError, ValueError):
        raise Failed(f"a plan has the form {EXAMPLE}") from None
    if not entries:
        raise Failed("Partition reassignment list cannot be empty")
    plan = dict(entries)
    if len(plan) < len(entries):
        twice = sorted({partition for partition, _ in entries if sum(other == partition for other, _ in entries) > 1})
        raise Failed(f"Partition reassignment contains duplicate topic partitions: {_listed(twice, ',')}")
    for (topic, index), replicas in entries:
        if not replicas:
            raise Failed(f"Partition replica list cannot be empty: {topic}-{index}")
        if len(set(replicas)) < len(replicas):
            raise Failed(f"Partition replica lists may not contain duplicate entries: {topic}-{index}")
    return plan


def _read(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise Failed(f"{path} is not JSON: {error}") from None


def _current(cluster: Cluster, plan: Iterable[Partition]) -> Plan:
    topics = describe_topics(cluster, list(dict.fromkeys(topic for topic, _ in plan)))
    known = {
        (topic.name or "", partition.partition_index): list(partition.replica_nodes)
        for topic in topics
        for partition in topic.partitions
    }
    missing = [partition for partition in plan if partition not in known]
    if missing:
        raise Failed(f"The partition {_listed(missing, ',')} does not exist")
    return {partition: known[partition] for partition in plan}


def _json(plan: Mapping[Partition, Sequence[int]]) -> str:
    partitions = [
        {"topic": topic, "partition": index, "replicas": list(replicas), "log_dirs": ["any"] * len(replicas)}
        for (topic, index), replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _broker_ids(text: str) -> list[int]:
    try:
        brokers = [int(part) for part in text.split(",")]
    except ValueError:
        raise Failed(f"--broker-list takes ids of brokers, not {text}") from None
    if len(set(brokers)) < len(brokers):
        raise Failed(f"Broker list contains duplicate entries: {text}")
    return brokers


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _listed(partitions: Iterable[Partition], separator: str) -> str:
    return separator.join(f"{topic}-{index}" for topic, index in sorted(partitions))


def _s(items: Sequence[object] | Mapping[Any, object]) -> str:
    return "" if len(items) == 1 else "s"


# --- throttles (KIP-73)
#
# The rate is for what a broker sends as a leader and what it receives as a follower. The leaders' replicas from which
# partitions are copied are throttled, and the followers' replicas that are new.


def _set_throttles(
    cluster: Cluster,
    current: Mapping[Partition, Sequence[int]],
    plan: Mapping[Partition, Sequence[int]],
    bytes_per_second: int,
) -> None:
    """Throttle what moves between `current` and `plan`."""
    replicas: dict[str, dict[str, list[str]]] = {}
    brokers: set[int] = set()
    for (topic, index), planned in plan.items():
        old = current[topic, index]
        new = [broker for broker in planned if broker not in old]
        if not new:
            continue
        brokers.update(old, new)
        keys = replicas.setdefault(topic, {LEADERS: [], FOLLOWERS: []})
        keys[LEADERS] += [f"{index}:{broker}" for broker in old]
        keys[FOLLOWERS] += [f"{index}:{broker}" for broker in new]
    for topic, keys in replicas.items():
        _alter(cluster, "topic", topic, {key: ",".join(listed) for key, listed in keys.items()})
    for broker in sorted(brokers):
        _alter(cluster, "broker", str(broker), dict.fromkeys(RATES, str(bytes_per_second)))


def _remove_throttles(cluster: Cluster, topics: Iterable[str]) -> list[int]:
    """Remove the throttles of all brokers and of these topics; returns the brokers."""
    brokers = [broker.broker_id for broker in describe_cluster(cluster).brokers]
    for broker in brokers:
        _alter(cluster, "broker", str(broker), dict.fromkeys(RATES))
    for topic in topics:
        _alter(cluster, "topic", topic, dict.fromkeys((LEADERS, FOLLOWERS)))
    return brokers


def _alter(cluster: Cluster, kind: str, name: str, values: Mapping[str, str | None]) -> None:
    changes = [ConfigChange(key, DELETE if value is None else SET, value) for key, value in values.items()]
    alter_config(cluster, kind, name, changes)
