"""Tasks for processes that read records, in a module that such a process imports quickly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import sleep

from barnabas.client.cluster import Cluster


def process_id(_cluster: Cluster) -> int:
    """Which process runs tasks."""
    return os.getpid()


def counted(_cluster: Cluster, count: int) -> Iterator[tuple[int, int]]:
    """Steps: the process and the number of each."""
    for number in range(count):
        yield os.getpid(), number


def endless(_cluster: Cluster) -> None:
    """Never ends by itself."""
    while True:
        sleep(1)


def fail(_cluster: Cluster, error: Exception) -> None:
    """Fails with this error."""
    raise error


def fail_locally(_cluster: Cluster) -> None:
    """Fails with an error that cannot be pickled."""

    class LocalError(Exception):
        """Not found by its name."""

    raise LocalError("by design")


def crash(_cluster: Cluster) -> None:
    """Ends the process."""
    os._exit(3)
