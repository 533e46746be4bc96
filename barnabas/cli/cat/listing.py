"""`cat -L` and `cat -Q`: metadata of brokers and topics, and offsets by time, in kcat's forms."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from barnabas.cli.cat.options import Options
from barnabas.client.offsets import list_offsets
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponseTopic


def list_metadata(options: Options) -> None:
    """Print brokers and topics; as in kcat a named topic is created if the broker creates topics."""
    names = list(options.topics) or None
    with options.connect() as cluster:
        response = cluster.retry(lambda deadline: cluster.metadata(names, deadline, create=names is not None))
        if names is not None:
            cluster.retry(lambda deadline: [cluster.topic(name, deadline, create=True) for name in names])
            response = cluster.retry(lambda deadline: cluster.metadata(names, deadline))
        address = cluster.retry(lambda deadline: cluster.any_node(deadline).address)
    node = next((broker for broker in response.brokers if f"{broker.host}:{broker.port}" == address), None)
    node_id = -1 if node is None else node.node_id
    name = f"{address}/{'bootstrap' if node is None else node_id}"
    if options.as_json:
        sys.stdout.write(_metadata_json(response, node_id, name, names))
        return
    print(f"Metadata for {'all topics' if names is None else ', '.join(names)} (from broker {node_id}: {name}):")
    print(f" {len(response.brokers)} brokers:")
    for broker in response.brokers:
        controller = " (controller)" if broker.node_id == response.controller_id else ""
        print(f"  broker {broker.node_id} at {broker.host}:{broker.port}{controller}")
    print(f" {len(response.topics)} topics:")
    for topic in response.topics:
        _print_topic(topic)


def _print_topic(topic: MetadataResponseTopic) -> None:
    print(f'  topic "{topic.name}" with {len(topic.partitions)} partitions:{_error(topic.error_code, " ")}')
    for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
        replicas, isrs = _ids(partition.replica_nodes), _ids(partition.isr_nodes)
        error = _error(partition.error_code, ", ")
        print(
            f"    partition {partition.partition_index}, leader {partition.leader_id}, "
            f"replicas: {replicas}, isrs: {isrs}{error}"
        )


def _ids(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _error(code: int, before: str) -> str:
    return f"{before}{ErrorCode(code).name}" if code else ""


def _metadata_json(response: MetadataResponse, node_id: int, name: str, names: list[str] | None) -> str:
    document = {
        "originating_broker": {"id": node_id, "name": name},
        "query": {"topic": "*" if names is None else names[0]},
        "controllerid": response.controller_id,
        "brokers": [{"id": broker.node_id, "name": f"{broker.host}:{broker.port}"} for broker in response.brokers],
        "topics": [
            {
                "topic": topic.name,
                **({"error": ErrorCode(topic.error_code).name} if topic.error_code else {}),
                "partitions": [
                    {
                        "partition": partition.partition_index,
                        **({"error": ErrorCode(partition.error_code).name} if partition.error_code else {}),
                        "leader": partition.leader_id,
                        "replicas": [{"id": node} for node in partition.replica_nodes],
                        "isrs": [{"id": node} for node in partition.isr_nodes],
                    }
                    for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
                ],
            }
            for topic in response.topics
        ],
    }
    return json.dumps(document, separators=(",", ":"))


def query_offsets(options: Options) -> None:
    """Print the offset of each `TOPIC:PARTITION:TIMESTAMP` (ms; -1 the end, -2 the beginning); -1 if there is none."""
    if not options.topics:
        raise click.UsageError("-t TOPIC:PARTITION:TIMESTAMP is missing")
    queries = dict(map(_query, options.topics))
    with options.connect() as cluster:
        offsets = list_offsets(cluster, queries)
    if not options.as_json:
        for topic, index in queries:
            print(f"{topic} [{index}] offset {offsets[topic, index]}")
        return
    document: dict[str, dict[str, object]] = {}
    for topic, index in queries:
        entry = document.setdefault(topic, {"topic": topic})
        entry[str(index)] = {"partition": index, "offset": offsets[topic, index]}
    sys.stdout.write(json.dumps(document, separators=(",", ":")))


def _query(text: str) -> tuple[tuple[str, int], int]:
    parts = text.rsplit(":", 2)
    try:
        return (parts[0], int(parts[1])), int(parts[2])
    except (ValueError, IndexError):
        raise click.BadParameter(f"must be TOPIC:PARTITION:TIMESTAMP, not {text!r}", param_hint="-t") from None
