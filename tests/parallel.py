"""How a parallel run (`-n 3 --dist loadfile`) shares the tests out to its processes.

The tests of a file stay together and in their order, since they share the fixtures of the file. Two exceptions: the
tests that use one Spark session are a group, because a session takes a gigabyte and many seconds; long tests that share
nothing are a group each. The groups that take longest begin first, so that the processes end at about the same time.
"""

from __future__ import annotations

from typing import Any

import pytest

SESSIONS = {
    "tests/clients/spark/": "Spark",
    "tests/pipeline/": "Spark",
    "tests/testkit/plugin/test_spark": "Spark",
    "tests/cluster/failover/test_failover": "clusters of every kind",
    "tests/cluster/failover/test_coordinator_failover": "clusters of every kind",
    "tests/cluster/test_mixed": "clusters of every kind",
}
"""The files whose tests use one Spark session, or the same clusters with JVMs, and the name of their group."""
OWN_PROCESSES = tuple(
    f"tests/pipeline/{room}/test_{name}.py"
    for room, names in {
        "frames": ("fold",),
        "jobs": ("demo",),
        "running": (
            "checkpoint", "java_and_jars", "kills", "notebook_names", "report_and_screen", "retries", "session",
        ),
        "settings": ("config", "mistakes", "security"),
    }.items()
    for name in names
)  # fmt: skip
"""Files of the pipeline that start Spark in processes of their own, or not at all."""
EACH_ALONE = (
    "tests/pages/test_pages.py", "tests/simulation/", "tests/crash/", "tests/mutants/test_sample.py",
    "tests/pipeline/running/test_kills.py",
)  # fmt: skip
LONGEST_FIRST = (
    "tests/pipeline/running/test_kills.py",
    *SESSIONS,
    "tests/pages/",
    "tests/clients/",
    "tests/cluster/",
    "tests/mutants/test_sample.py",
    "tests/simulation/",
    "tests/crash/",
    "tests/hostile/",
    "tests/cli/",
)


def group_of(nodeid: str) -> str:
    """The name of the group that a test belongs to."""
    if nodeid.startswith(EACH_ALONE):
        return nodeid
    if not nodeid.startswith(OWN_PROCESSES):
        for prefix, group in SESSIONS.items():
            if nodeid.startswith(prefix):
                return group
    return nodeid.partition("::")[0]


def _rank(nodeid: str) -> int:
    return next((rank for rank, prefix in enumerate(LONGEST_FIRST) if nodeid.startswith(prefix)), len(LONGEST_FIRST))


def is_shared_out(config: pytest.Config) -> bool:
    """Whether this is a parallel run, in the process that directs it or in one that runs tests."""
    return bool(config.getoption("dist", "no") == "loadfile")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the long groups begin first."""
    if is_shared_out(config):
        items.sort(key=lambda item: _rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The scheduler of `--dist loadfile`, with our groups."""
    if not is_shared_out(config):
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        """Keeps a group on one process."""

        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return Scheduler(config, log)
