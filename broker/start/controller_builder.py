"""Builds the controller of a cluster: in a process of its own, or in a broker's process.

A process with the role `controller` alone has no partitions but the metadata log, and imports little.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.context import Broker, new_uuid
from barnabas.broker.event_loop.steps import StepRunner, run_in_place
from barnabas.broker.log_dir_failures import LogDirFailures
from barnabas.broker.metadata.active_controller import ActiveController
from barnabas.storage.directories.log_dirs import LogDirs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.world import World


def open_controller(config: ServerConfig, paths: Sequence[str], world: World, endpoints: Sequence[Endpoint]) -> Broker:
    """A process that is only a controller, with replayed metadata; `endpoints` are its listeners as advertised.

    Raises what opening the data directories and replaying the metadata raise.
    """
    absolute = [str(Path(path).absolute()) for path in paths]
    log_dirs = LogDirs(world.files, absolute, partial(new_uuid, world.random_bytes))
    cluster_id = log_dirs.open(config.node_id, config.cluster_id or "")
    try:
        node = Broker(config, world, cluster_id=cluster_id)
        node.log_dirs = log_dirs
        node.log_dir_failures = LogDirFailures(node.loop, log_dirs, node.halt)
        log_dirs.on_error = node.log_dir_failures.report
        node.runner = StepRunner(node.loop, world.disk)
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
