"""The drained brokers of a cluster: a file for each in its directory, with the former replicas, for the undo.

It is durable before anything is moved.
"""

from __future__ import annotations

import json
from pathlib import Path

from barnabas.storage.directories.checkpoints import replace_file
from barnabas.storage.files import Files
from barnabas.supervise.balance import Assignment
from barnabas.supervise.state import ClusterState, NoCluster, Unreadable


def drained(known: ClusterState) -> set[int]:
    """The drained brokers of a cluster."""
    return {node.node_id for node in known.brokers if _path(str(Path(node.directory).parent), node.node_id).exists()}


def save(data_dir: str, broker: int, before: Assignment) -> None:
    """Keep the replicas that the changed partitions had. A second drain adds to the first."""
    path = _path(data_dir, broker)
    earlier = load(data_dir, broker) if path.exists() else {}
    rows = [[topic, partition, replicas] for (topic, partition), replicas in (before | earlier).items()]
    replace_file(Files(), str(path.absolute()), json.dumps(rows).encode())


def load(data_dir: str, broker: int) -> Assignment:
    """The replicas that `save` kept. NoCluster's sentence if the broker is not drained, or the file is unreadable."""
    path = _path(data_dir, broker)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {
            (str(topic), int(partition)): [int(replica) for replica in replicas] for topic, partition, replicas in rows
        }
    except FileNotFoundError:
        raise NoCluster(f"broker {broker} is not drained") from None
    except (ValueError, TypeError) as error:
        raise Unreadable(
            f"{path}, which has the replicas that were moved away, cannot be read: {error}. Remove it and spread them "
            "with 'barnabas cluster rebalance'"
        ) from error


def forget(data_dir: str, broker: int) -> None:
    """Remove the file of a broker that is not drained any more."""
    _path(data_dir, broker).unlink(missing_ok=True)


def _path(data_dir: str, broker: int) -> Path:
    return Path(data_dir) / f"broker-{broker}.drained.json"
