"""Writers and readers of a cluster, whose results are checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.load.replicas import differences
from tests.cluster.load.work import Work, create_topic
from tests.support.cluster.asking import is_in_sync
from tests.support.cluster.clusters import Cluster
from tests.support.waiting import ANY_ERROR, wait_for

RATE = 200
"""Records a second of the writer."""


MORE = 60
"""Records that are acknowledged while something is broken."""


def in_sync(cluster: Cluster, topic: str) -> None:
    """Wait until every partition has three replicas in sync."""
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 3), f"three replicas of {topic} in sync", errors=ANY_ERROR)


def same_bytes(cluster: Cluster, topic: str) -> None:
    """Wait until all replicas have the same bytes."""
    dirs = {broker: node.data_dir for broker, node in cluster.brokers.items()}
    wait_for(
        lambda: not differences(dirs, [topic]),
        lambda: f"replicas with the same bytes: {differences(dirs, [topic])}",
        errors=ANY_ERROR,
    )


@contextmanager
def checked_work(cluster: Cluster, tmp_path: Path, topic: str) -> Iterator[Work]:
    """Work on a new topic; at the end it goes on with all replicas, has lost nothing, and replicas are the same."""
    create_topic(cluster.bootstrap, topic)
    in_sync(cluster, topic)
    with Work(cluster, tmp_path / "histories", topic, rate=RATE, in_threads=True) as work:
        work.go_on(MORE)
        yield work
        in_sync(cluster, topic)
        work.go_on(MORE)
        assert work.finish() == []
    same_bytes(cluster, topic)
