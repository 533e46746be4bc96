"""Builds the controller of a cluster: in a process of its own, or in a broker's process.

A process with the role `controller` alone has no partitions but the metadata log, and imports little.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from barnabas.broker.context import Broker, new_uuid, wall_clock_ms
from barnabas.broker.log_dir_failures import LogDirFailures
from barnabas.broker.loop import Loop
from barnabas.broker.metadata.active_controller import ActiveController
from barnabas.broker.steps import StepRunner, run_in_place
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.disk_threads import DiskExecutor


def open_controller(
    config: ServerConfig,
    paths: Sequence[str],
    endpoints: Sequence[Endpoint],
    *,
    disk: DiskExecutor,
    files: Files | None = None,
    now: Callable[[], float] = trio.current_time,
    now_ms: Callable[[], int] = wall_clock_ms,
    random_bytes: Callable[[int], bytes] = os.urandom,
    make_loop: Callable[[Callable[[], float], Callable[[], int]], Loop] = Loop,
) -> Broker:
    """A process that is only a controller, with replayed metadata; `endpoints` are its listeners as advertised.

    `disk` runs what waits for disks. It, clocks, files and randomness can be replaced by tests. Raises what opening the
    data directories and replaying the metadata raise.
    """
    absolute = [str(Path(path).absolute()) for path in paths]
    log_dirs = LogDirs(files or Files(), absolute, partial(new_uuid, random_bytes))
    cluster_id = log_dirs.open(config.node_id, config.cluster_id or "")
    try:
        node = Broker(
            config, cluster_id=cluster_id, now=now, now_ms=now_ms, random_bytes=random_bytes, make_loop=make_loop
        )
        node.log_dirs = log_dirs
        node.log_dir_failures = LogDirFailures(node.loop, log_dirs, node.halt)
        log_dirs.on_error = node.log_dir_failures.report
        node.runner = StepRunner(node.loop, disk)
        add_controller(node)
        node.add_authorizer()
        node.metadata.on_change.append(node.follow_quotas)
        node.active_controller.open_for(endpoints)
        if node.authorizer is not None:
            node.authorizer.load(node.image)
        if node.image.quotas:
            run_in_place(node.take_quotas())
    except BaseException:
        log_dirs.release()
        raise
    return node


def add_controller(node: Broker) -> None:
    """Make the controller of a cluster, which is not open yet, the node's controller and metadata."""
    controller = ActiveController(
        node.loop, node.config, node.log_dirs, node.log_dir_failures, node.runner, cluster_id=node.cluster_id
    )
    node.metadata = node.controller = node.active_controller = controller
