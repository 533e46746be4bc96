"""Builds a broker: creates its parts in order, connects them, opens the data directories and replays the metadata.

Only this module knows how the parts are connected, and which are called when metadata or log directories change.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.broker.config.keys.general import MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from barnabas.broker.config.keys.own import PRODUCE_VALIDATION
from barnabas.broker.context import Broker, new_uuid
from barnabas.broker.coordinators.groups import GroupCoordinators
from barnabas.broker.coordinators.services import BrokerServices
from barnabas.broker.coordinators.share_coordinators import ShareCoordinators
from barnabas.broker.coordinators.share_states import ShareStates
from barnabas.broker.coordinators.transactions import TransactionCoordinators
from barnabas.broker.event_loop.steps import StepRunner, run_in_place
from barnabas.broker.log_dir_failures import LogDirFailures
from barnabas.broker.metadata.controller import Controller
from barnabas.broker.metadata.producer_ids import ProducerIds
from barnabas.broker.replicas.flush.flusher import Flusher
from barnabas.broker.replicas.leader.fetch_sessions import FetchSessions
from barnabas.broker.replicas.partitions import Partitions
from barnabas.storage.directories.foreign import refuse_node
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.topic_keys import SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from barnabas.broker.cluster_member import ClusterMember, RemoteController
    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.net.client.outgoing import Connect
    from barnabas.broker.world import World
    from barnabas.wire.schema import Message

TOPIC_DEFAULT_KEYS = {name for synonyms in SYNONYMS.values() for name, _ in synonyms} | {PRODUCE_VALIDATION.name}
"""The broker configs that are defaults of topic configs."""


def open_broker(config: ServerConfig, paths: Sequence[str], world: World) -> Broker:
    """Build a broker with open logs and replayed metadata; nothing listens yet.

    Raises what opening the data directories and replaying the metadata raise.
    """
    for path in paths:
        refuse_node(world.files, str(Path(path).absolute()))
    broker = _new_broker(config, paths, world)
    try:
        broker.metadata = broker.controller = Controller(
            broker.loop,
            config,
            broker.log_dirs,
            broker.log_dir_failures,
            broker.runner,
            cluster_id=broker.cluster_id,
        )
        _add_parts(broker, world)
        broker.controller.open()
        load_logs(broker)
    except BaseException:
        broker.log_dirs.release()
        raise
    return broker


def open_member(
    config: ServerConfig,
    paths: Sequence[str],
    world: World,
    connect: Callable[[Broker], Connect],
    connect_to_controllers: Callable[[Broker], Connect] | None = None,
) -> tuple[Broker, ClusterMember, RemoteController]:
    """Build a broker whose controllers are other processes; its logs are opened when it has the metadata.

    `connect` returns the function that opens connections to other nodes; `connect_to_controllers`, called after it, the
    one for controllers if that is another one.
    """
    from barnabas.broker.cluster_member import ClusterMember, RemoteController

    broker = _new_broker(config, paths, world, invents_cluster_id=False)
    broker.log_dirs.are_replicas = True
    try:
        connects = connect(broker)
        remote = RemoteController(broker, connect_to_controllers(broker) if connect_to_controllers else connects)
        broker.metadata = remote.metadata
        _add_parts(broker, world)
        remote.copy.open()
        observer = remote.observer
        member = ClusterMember(
            broker, world.files, remote.channel, connects, lambda: observer.applied_offset, observer.publish_from
        )
    except BaseException:
        broker.log_dirs.release()
        raise
    return broker, member, remote


def open_combined(
    config: ServerConfig,
    paths: Sequence[str],
    world: World,
    connect: Callable[[Broker], Connect],
    controllers: Sequence[Endpoint],
) -> tuple[Broker, ClusterMember]:
    """Build a broker that is also the controller of a cluster, with open logs; it has not joined the cluster yet.

    `controllers` are the controller's listeners as advertised, `connect` is as in `open_member`.
    """
    from barnabas.broker.cluster_member import ClusterMember
    from barnabas.broker.metadata.controller_channel import LocalChannel
    from barnabas.broker.start.controller_builder import add_controller

    broker = _new_broker(config, paths, world)
    broker.log_dirs.are_replicas = True
    try:
        add_controller(broker)
        _add_parts(broker, world)
        channel = LocalChannel(broker.loop, broker.active_controller)
        member = ClusterMember(
            broker, world.files, channel, connect(broker), lambda: broker.image.offset, lambda open_logs: open_logs()
        )
        broker.active_controller.open_for(controllers)
        load_logs(broker)
    except BaseException:
        broker.log_dirs.release()
        raise
    return broker, member


def _new_broker(config: ServerConfig, paths: Sequence[str], world: World, *, invents_cluster_id: bool = True) -> Broker:
    """A broker with locked and identified data directories."""
    absolute = [str(Path(path).absolute()) for path in paths]
    log_dirs = LogDirs(world.files, absolute, partial(new_uuid, world.random_bytes))
    cluster_id = log_dirs.open(config.node_id, config.cluster_id or "", invents_id=invents_cluster_id)
    broker = Broker(config, world, cluster_id=cluster_id)
    broker.log_dirs = log_dirs
    broker.log_dir_failures = LogDirFailures(broker.loop, log_dirs, broker.halt)
    log_dirs.on_error = broker.log_dir_failures.report
    broker.runner = StepRunner(broker.loop, world.disk)
    return broker


def _add_parts(broker: Broker, world: World) -> None:
    """Create the parts that need `broker.metadata`, and connect them."""
    config, loop, random_bytes, flushes = broker.config, broker.loop, world.random_bytes, world.flushes or world.disk
    log_dirs, failures = broker.log_dirs, broker.log_dir_failures
    flushers = {log_dir: Flusher(loop, log_dir, failures, flushes) for log_dir in log_dirs.dirs}
    slots = config[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS]
    broker.fetch_sessions = FetchSessions(slots, partial(_new_session_id, random_bytes), partial(_topic_name, broker))
    broker.partitions = Partitions(loop, config, log_dirs, failures, flushers, broker.runner)
    if broker.meter is not None:
        broker.meter.follow(broker.partitions)
    broker.producer_ids = ProducerIds(broker.metadata.allocate_producer_ids)
    services = broker.services = BrokerServices(
        loop,
        config,
        broker.partitions,
        lambda: broker.image,
        broker.metadata.has_topic,
        broker.metadata.auto_create,
        lambda node_id, purpose: broker.inter_broker.client(node_id, purpose),  # noqa: PLW0108 - set in a cluster
    )
    broker.share_coordinators = ShareCoordinators(services)
    broker.share_states = ShareStates(services, broker.share_coordinators)
    broker.group_coordinators = GroupCoordinators(
        services, broker.share_states, lambda: broker.group_configs, random_bytes
    )
    broker.transaction_coordinators = TransactionCoordinators(
        services, broker.producer_ids.next, broker.group_coordinators.transaction_ended
    )
    _subscribe(broker)


def load_logs(broker: Broker) -> None:
    """Open the logs of the partitions in the image, and load what coordinators keep in them."""
    if broker.authorizer is not None:
        broker.authorizer.load(broker.image)
    broker.partitions.load(broker.image)
    if broker.image.quotas:
        run_in_place(broker.take_quotas())
    if broker.log_dirs.futures.directories:
        broker.dir_moves.resume()
    broker.group_coordinators.load()
    broker.transaction_coordinators.load()
    broker.share_coordinators.load()


def _subscribe(broker: Broker) -> None:
    """Subscribe the parts that follow changes of the metadata and failures of log directories."""
    metadata, partitions = broker.metadata, broker.partitions
    coordinators = (broker.group_coordinators, broker.transaction_coordinators, broker.share_coordinators)

    def apply_topic_defaults(changed: set[str]) -> Steps[None] | None:
        return partitions.update_configs(broker.image) if changed & TOPIC_DEFAULT_KEYS else None

    def send_to_controller(request: Message, then: Callable[[Any], None]) -> None:
        broker.controller_channel.send(request, then)

    partitions.send_to_controller = send_to_controller
    broker.add_authorizer()
    metadata.on_change.append(lambda delta: partitions.apply(broker.image, delta))
    metadata.on_change.extend(runtime.apply for runtime in coordinators)
    metadata.on_change.append(broker.follow_quotas)
    metadata.on_config_change.append(apply_topic_defaults)
    partitions.on_failure = {runtime.topic: runtime.partition_failed for runtime in coordinators}
    broker.log_dir_failures.on_failure.append(partitions.take_dir_offline)


def _topic_name(broker: Broker, topic_id: bytes) -> str:
    topic = broker.image.topic_by_id(topic_id)
    return "" if topic is None else topic.name


def _new_session_id(random_bytes: Callable[[int], bytes]) -> int:
    return int.from_bytes(random_bytes(4), "big") >> 1
