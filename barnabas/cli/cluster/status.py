"""`barnabas cluster status`: brokers with their states, partitions, lags and loads."""

from __future__ import annotations

from time import monotonic

import click

from barnabas.cli.cluster.directory import known_cluster, optional_cluster_dir_option
from barnabas.cli.options.parameters import bootstrap_option, connect, output_option, timeout_option
from barnabas.client.admin.cluster import describe_cluster, partitions_where
from barnabas.client.admin.log_dirs import describe_log_dirs
from barnabas.client.admin.topics import list_topics
from barnabas.client.broker_loads import broker_loads
from barnabas.client.cluster import Cluster
from barnabas.supervise.drains import drained
from barnabas.supervise.state import ClusterState
from barnabas.terminal.notes import note
from barnabas.terminal.tables import is_document, show, show_rows

Row = dict[str, object]
PATIENCE_S = 5.0
"""How long brokers are waited for when the directory says who should run, seconds."""
COLUMNS = ("broker", "state", "address", "leaders", "replicas", "lag", "cpu", "memory", "disk", "bytes_s", "messages_s")


@click.command()
@optional_cluster_dir_option
@bootstrap_option
@timeout_option
@output_option
def status(data_dir: str | None, bootstrap: str, timeout_s: float, output: str) -> int:
    """Show each broker: whether it is online, draining, fenced or offline, its partitions, lag and load.

    The lag is the number of offsets by which the broker's followers are behind. The broker itself reports CPU, memory
    and disk, and the bytes and messages that are appended per second; in JSON and YAML memory is in bytes, and 1 is all
    of the CPU or the disk. Partitions of internal topics count. Exit 1 if a partition is offline, or a broker or
    a controller is not online.
    """
    known = known_cluster(data_dir)
    rows: list[Row] = []
    facts: Row = {"partitions": None, "under_replicated": None, "offline": None}
    if known is None or any(node.pid is not None for node in known.brokers):
        address = bootstrap if known is None else known.bootstrap
        with connect(address, timeout_s if known is None else min(timeout_s, PATIENCE_S)) as client:
            rows, facts = _from_cluster(client)
    rows = _with_processes(rows, known)
    if is_document(output):
        show({**facts, "brokers": rows, "controllers": _controllers(known)}, output)
    else:
        click.echo(", ".join(f"{_words(name)}: {'-' if value is None else value}" for name, value in facts.items()))
        show_rows([_shown(row) for row in rows], output, columns=COLUMNS)
        for controller in _controllers(known):
            note(f"controller {controller['controller']}: {controller['state']} (pid {controller['pid'] or '-'})")
    is_well = not facts["offline"] and all(row["state"] in ("online", "draining") for row in rows)
    return 0 if is_well and all(controller["pid"] is not None for controller in _controllers(known)) else 1


def _shown(row: Row) -> Row:
    """The row of a table: shares as percentages, memory in MB."""
    cpu, memory, disk = row["cpu"], row["memory"], row["disk"]
    if not (isinstance(cpu, float) and isinstance(memory, int) and isinstance(disk, float)):
        return row  # the broker does not report them
    return row | {"cpu": f"{cpu:.0%}", "memory": f"{memory / 2**20:.0f} MB", "disk": f"{disk:.0%}"}


def _words(name: str) -> str:
    return name.replace("_", "-")


def _controllers(known: ClusterState | None) -> list[Row]:
    nodes = [] if known is None else [node for node in known.nodes if node.role == "controller"]
    return [{"controller": node.node_id, "state": node.state, "pid": node.pid, "log": node.log} for node in nodes]


def _with_processes(rows: list[Row], known: ClusterState | None) -> list[Row]:
    """The rows with what the directory says: pids, drained brokers, and those that no broker tells of."""
    if known is None:
        return rows
    by_id = {row["broker"]: row for row in rows}
    draining = drained(known)
    for node in known.brokers:
        row = by_id.setdefault(node.node_id, _row(node.node_id, "offline", node.address))
        if node.pid is None:
            row["state"] = "offline"
        elif node.node_id in draining and row["state"] == "online":
            row["state"] = "draining"
        row |= {"pid": node.pid, "detail": node.detail, "log": node.log}
    return [by_id[broker] for broker in sorted(by_id, key=str)]


def _row(broker: int, state: str, address: str) -> Row:
    figures: Row = dict.fromkeys(("leaders", "replicas", "lag", "cpu", "memory", "disk", "bytes_s", "messages_s"))
    return {"broker": broker, "state": state, "address": address, **figures}


def _from_cluster(client: Cluster) -> tuple[list[Row], Row]:
    described = describe_cluster(client)
    topics = list_topics(client)
    live = [broker.broker_id for broker in described.brokers if not broker.is_fenced]
    loads = broker_loads(client, live, monotonic() + PATIENCE_S)
    lags = _lags(client)
    rows = []
    for broker in described.brokers:
        row = _row(broker.broker_id, "fenced" if broker.is_fenced else "online", f"{broker.host}:{broker.port}")
        partitions = [partition for topic in topics for partition in topic.partitions]
        row["leaders"] = sum(partition.leader_id == broker.broker_id for partition in partitions)
        row["replicas"] = sum(broker.broker_id in partition.replica_nodes for partition in partitions)
        row["lag"] = lags.get(broker.broker_id)
        load = loads.get(broker.broker_id)
        if load is not None:
            row |= {
                "cpu": round(load.cpu, 4),
                "memory": load.memory_bytes,
                "disk": round(load.disk, 4),
                "bytes_s": round(load.bytes_per_s),
                "messages_s": round(load.messages_per_s),
            }
        rows.append(row)
    facts: Row = {
        "partitions": sum(len(topic.partitions) for topic in topics),
        "under_replicated": len(partitions_where(topics, offline=False)),
        "offline": len(partitions_where(topics, offline=True)),
    }
    return rows, facts


def _lags(client: Cluster) -> dict[int, int]:
    """By how many offsets the replicas of each broker are behind, together."""
    lags: dict[int, int] = {}
    for directory in describe_log_dirs(client, None):
        lags.setdefault(directory.broker, 0)
        for replica in directory.replicas:
            if not replica.is_future:
                lags[directory.broker] += max(0, replica.offset_lag)
    return lags
