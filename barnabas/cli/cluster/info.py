"""`barnabas cluster info|health`."""

from __future__ import annotations

import click

from barnabas.cli.cluster.directory import known_cluster, optional_cluster_dir_option
from barnabas.cli.failure import FAILED
from barnabas.cli.options.parameters import bootstrap_option, connect, output_option, timeout_option
from barnabas.client.admin.cluster import describe_cluster, describe_features, partitions_where
from barnabas.client.admin.log_dirs import describe_log_dirs
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.supervise.state import ClusterState
from barnabas.terminal.plural import plural
from barnabas.terminal.tables import is_document, show, show_fields, show_rows
from barnabas.wire.messages.metadata import MetadataResponseTopic

Row = dict[str, object]


@click.command()
@optional_cluster_dir_option
@bootstrap_option
@timeout_option
@output_option
def info(data_dir: str | None, bootstrap: str, timeout_s: float, output: str) -> None:
    """Show the cluster's id, controller, features and brokers, and how many topics and partitions it has."""
    known = known_cluster(data_dir)
    with connect(bootstrap if known is None else known.bootstrap, timeout_s) as client:
        described = describe_cluster(client)
        topics = list_topics(client)
        features = {feature.name: feature.level for feature in describe_features(client) if feature.level}
    partitions = [partition for topic in topics for partition in topic.partitions]
    facts: Row = {
        "cluster_id": described.cluster_id,
        "controller": described.controller_id,
        "brokers": len(described.brokers),
        "topics": sum(not topic.is_internal for topic in topics),
        "internal_topics": sum(topic.is_internal for topic in topics),
        "partitions": len(partitions),
        "replicas": sum(len(partition.replica_nodes) for partition in partitions),
    }
    brokers: list[Row] = [
        {
            "broker": broker.broker_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "controller": broker.broker_id == described.controller_id,
            "fenced": broker.is_fenced,
        }
        for broker in described.brokers
    ]
    if is_document(output):
        show(facts | {"brokers": brokers, "features": features}, output)
        return
    show_fields(facts | {"features": [f"{name}={level}" for name, level in features.items()]}, output)
    click.echo()
    show_rows(brokers, output, columns=("broker", "host", "port", "rack", "controller"))


@click.command()
@optional_cluster_dir_option
@bootstrap_option
@timeout_option
@output_option
def health(data_dir: str | None, bootstrap: str, timeout_s: float, output: str) -> int:
    """Exit 0 if every partition has a leader and all its replicas, and 1 if not; the problems are listed.

    Problems are partitions that are offline (without a leader) or under-replicated, log directories that are offline,
    and brokers that are fenced. With the directory of the cluster, also nodes that do not run. 'barnabas health' checks
    only whether a broker answers.
    """
    known = known_cluster(data_dir)
    problems, topics, brokers = _node_problems(known), [], 0
    if known is None or any(node.pid is not None for node in known.brokers):
        with connect(bootstrap if known is None else known.bootstrap, timeout_s) as client:
            topics = list_topics(client)
            problems += _partition_problems(topics) + _broker_problems(client)
            brokers = len(client.nodes)
    count = sum(len(topic.partitions) for topic in topics)
    healthy = not problems
    if is_document(output):
        show({"healthy": healthy, "partitions": count, "problems": problems}, output)
    else:
        verdict = "healthy" if healthy else f"{len(problems)} {plural('problem', len(problems))}"
        click.echo(f"{verdict}: {brokers} {plural('broker', brokers)}, {count} partitions")
        if problems:
            show_rows(problems, output)
    return 0 if healthy else FAILED


def _node_problems(known: ClusterState | None) -> list[Row]:
    return [
        {"problem": "down", "what": node.name, "detail": node.detail or node.state}
        for node in ([] if known is None else known.nodes)
        if node.pid is None
    ]


def _partition_problems(topics: list[MetadataResponseTopic]) -> list[Row]:
    offline: list[Row] = [
        {
            "problem": "offline",
            "what": f"{name}-{partition.partition_index}",
            "detail": f"replicas {_ids(partition.replica_nodes)}",
        }
        for name, partition in partitions_where(topics, offline=True)
    ]
    return offline + [
        {
            "problem": "under-replicated",
            "what": f"{name}-{partition.partition_index}",
            "detail": f"in sync {_ids(partition.isr_nodes)} of {_ids(partition.replica_nodes)}",
        }
        for name, partition in partitions_where(topics, offline=False)
    ]


def _broker_problems(client: Cluster) -> list[Row]:
    fenced: list[Row] = [
        {"problem": "fenced", "what": f"broker {broker.broker_id}", "detail": f"{broker.host}:{broker.port}"}
        for broker in describe_cluster(client).brokers
        if broker.is_fenced
    ]
    return fenced + [
        {
            "problem": "log-dir-offline",
            "what": f"broker {log_dir.broker}",
            "detail": f"{log_dir.path} ({log_dir.error})",
        }
        for log_dir in describe_log_dirs(client, [])
        if log_dir.error is not None
    ]


def _ids(nodes: list[int]) -> str:
    return ",".join(map(str, nodes)) or "none"
