"""Clusters of three brokers that tests share: a test uses its own topics and heals what it breaks.

`cluster` has processes, for tests that kill them; `local_cluster` has its nodes in the process of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.cluster.clusters import Cluster, cluster_of
from tests.support.cluster.quorums import IN_PROCESS

_JVMS = [pytest.mark.jvm, pytest.mark.soak]
_UNDER_KAFKA = pytest.param("kafka", marks=_JVMS)
KINDS = [IN_PROCESS, pytest.param("ours", marks=pytest.mark.soak), _UNDER_KAFKA]
"""For tests that kill no process."""
WITH_MIXED = ["ours", _UNDER_KAFKA, pytest.param("mixed", marks=_JVMS)]
"""Clusters of processes. `mixed`: a broker of Apache Kafka and two of ours, under Kafka's controllers."""
StartCluster = Callable[[str], Cluster]
CLUSTERS: pytest.StashKey[list[Cluster]] = pytest.StashKey()


@pytest.fixture(scope="session")
def start_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartCluster]:
    """A function of a kind: the cluster of that kind, started unless it runs; one of another kind is stopped before."""
    running: dict[str, Cluster] = {}
    shown = request.config.stash.setdefault(CLUSTERS, [])

    def stop() -> None:
        for cluster in running.values():
            cluster.stop()
            shown.remove(cluster)
        running.clear()

    def start(kind: str) -> Cluster:
        if kind not in running:
            stop()
            cluster = running[kind] = cluster_of(kind, tmp_path_factory.mktemp("cluster"))
            shown.append(cluster)
            cluster.start()
        return running[kind]

    yield start
    stop()


@pytest.fixture(scope="session", params=WITH_MIXED)
def cluster(request: pytest.FixtureRequest, start_cluster: StartCluster) -> Cluster:
    """A cluster of processes."""
    return start_cluster(request.param)


@pytest.fixture(scope="module", params=KINDS)
def local_cluster(
    request: pytest.FixtureRequest, start_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster in this process, or one under Kafka's controllers; it ends with the tests of a file."""
    if request.param != IN_PROCESS:
        yield start_cluster(request.param)
        return
    cluster = cluster_of(IN_PROCESS, tmp_path_factory.mktemp("cluster"))
    request.config.stash.setdefault(CLUSTERS, []).append(cluster)
    try:
        yield cluster.start()
    finally:
        cluster.stop()
        request.config.stash[CLUSTERS].remove(cluster)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Attach the nodes' logs to the report of a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for cluster in item.config.stash.get(CLUSTERS, []):
            report.sections.append(("logs of the cluster", cluster.log()))
