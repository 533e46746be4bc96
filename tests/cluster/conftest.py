"""One cluster for each kind of controllers, for all tests of this process: a test uses its own topics and heals it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.clusters import Cluster

_JVMS = [pytest.mark.jvm, pytest.mark.soak]
KINDS = ["ours", pytest.param("kafka", marks=_JVMS)]
WITH_MIXED = [*KINDS, pytest.param("mixed", marks=_JVMS)]
"""`mixed`: a broker of Apache Kafka and two of ours, under Kafka's controllers, formatted as by default."""


@pytest.fixture(scope="session", params=KINDS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers under one of the kinds of controllers."""
    folder = tmp_path_factory.mktemp("cluster")
    if request.param == "mixed":
        made = Cluster(folder, kind="kafka", software={1: "kafka"}, default_format=True)
    else:
        made = Cluster(folder, kind=request.param)
    request.config.stash.setdefault(CLUSTERS, []).append(made)
    try:
        yield made.start()
    finally:
        made.stop()
        request.config.stash[CLUSTERS].remove(made)


CLUSTERS: pytest.StashKey[list[Cluster]] = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Attach the nodes' logs to the report of a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for made in item.config.stash.get(CLUSTERS, []):
            report.sections.append(("logs of the cluster", made.log()))
