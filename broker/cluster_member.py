"""The parts of a broker only in a cluster: its session at the controller, connections to other brokers, its fetchers.

A start waits for the metadata, then the broker registers. When the metadata has its registration, the logs are opened
and clients are accepted; then it is unfenced, and only then it is ready. A stop begins with a controlled shutdown: the
broker serves until the controller has moved its leaders away. Both kinds of controller are used in the same way;
`RemoteController` reaches one over the network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from barnabas import __version__
from barnabas.broker.config.keys.controller import (
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_RETRY_BACKOFF_MS,
    CONTROLLER_QUORUM_VOTERS,
    CONTROLLER_SOCKET_TIMEOUT_MS,
)
from barnabas.broker.config.keys.general import PRODUCER_ID_EXPIRATION_MS
from barnabas.broker.config.keys.own import ALWAYS, LOG_SYNC
from barnabas.broker.config.roles import parse_address, parse_voters
from barnabas.broker.config.sasl_logins import controller_login, inter_broker_login
from barnabas.broker.metadata.directory_assignments import DirectoryAssignments
from barnabas.broker.metadata.lifecycle import BrokerLifecycle
from barnabas.broker.metadata.loader import MetadataLoader
from barnabas.broker.metadata.log.metadata_copy import MetadataCopy
from barnabas.broker.metadata.observer import MetadataObserver
from barnabas.broker.metadata.own_registration import registration_request
from barnabas.broker.metadata.previous_epoch import NO_CLAIM, claimed_epoch, write_epoch
from barnabas.broker.metadata.quorum_leader import QuorumLeader
from barnabas.broker.metadata.remote_channel import RemoteChannel
from barnabas.broker.metadata.remote_metadata import RemoteMetadata
from barnabas.broker.net.client.inter_broker import InterBroker
from barnabas.broker.replicas.fetchers.manager import FetcherManager
from barnabas.broker.security.client_login import logins
from barnabas.coord.cluster.topic_image import LOST_DIRECTORY
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.wire.errors import KafkaError
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.context import Broker
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.metadata.controller_channel import ControllerChannel
    from barnabas.broker.net.client.outgoing import Connect
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.storage.files import Files
    from barnabas.wire.messages.cluster import BrokerRegistrationRequest
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.server.BrokerServer")


class ClusterMember:
    """A broker's place in its cluster."""

    def __init__(
        self,
        broker: Broker,
        files: Files,
        channel: ControllerChannel,
        connect: Connect,
        applied_offset: Callable[[], int],
        publish_from: Callable[[Callable[[], None]], None],
    ) -> None:
        """`applied_offset` is the last offset of the metadata in the image.

        `publish_from` calls a function between two changes of the image; the broker follows those after it.
        """
        self._broker = broker
        self._files = files
        self._publish_from = publish_from
        self._listeners: Sequence[Endpoint] = ()
        self._incarnation_id = broker.log_dirs.new_id()
        broker.partitions.incarnation_id = self._incarnation_id
        self._claimed_epoch = NO_CLAIM
        self._recovered: set[tuple[str, int]] = set()
        config, loop = broker.config, broker.loop
        broker.controller_channel = channel
        broker.inter_broker = InterBroker(
            loop,
            connect,
            self._endpoint,
            client_id=f"broker-{config.node_id}",
            software_version=__version__,
            login=logins(inter_broker_login(config), broker.random_bytes, tokens(broker)),
        )
        self.lifecycle = broker.lifecycle = BrokerLifecycle(
            loop,
            config,
            channel,
            registration=self._registration,
            applied_offset=applied_offset,
            offline_dirs=self._offline_dirs,
            persist_epoch=self._persist_epoch,
            halt=broker.halt,
        )
        self.assignments = DirectoryAssignments(
            loop,
            broker.log_dirs,
            channel,
            node_id=config.node_id,
            image=lambda: broker.image,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            can_serve=broker.partitions.local_failures.can_serve,
            is_new=broker.partitions.local_failures.is_new,
        )
        self.fetchers = FetcherManager(
            loop,
            config,
            broker.partitions,
            broker.log_dirs,
            broker.log_dir_failures,
            broker.runner,
            broker.inter_broker.client,
            image=lambda: broker.image,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
        )
        self._inter_broker_listener = config.inter_broker_listener
        broker.metadata.on_change.append(self._follow_registrations)
        broker.metadata.on_change.append(self.assignments.apply)
        broker.metadata.on_change.append(self._hasten_shutdown)
        broker.metadata.on_config_change.append(self.fetchers.config_changed)
        broker.partitions.local_failures.on_change.append(self._report_replicas)
        broker.log_dir_failures.on_failure.append(lambda _dir, _reason: self.lifecycle.heartbeat_now())

    async def join(self, listeners: Sequence[Endpoint], open_logs: Callable[[], None]) -> None:
        """Register with the bound listeners and wait until this broker is unfenced. Raises what `open_logs` raises."""
        joined = trio.Event()
        failures: list[Exception | None] = []

        def then(failure: Exception | None) -> None:
            failures.append(failure)
            joined.set()

        self.begin_joining(listeners, open_logs, then)
        await joined.wait()
        if failures[0] is not None:
            raise failures[0]

    def begin_joining(
        self, listeners: Sequence[Endpoint], open_logs: Callable[[], None], then: Callable[[Exception | None], None]
    ) -> None:
        """Register, open the logs when the metadata has the registration, and be unfenced; then call `then`.

        Until then the image has the leaderships of an earlier incarnation, which the controller has moved meanwhile.
        """
        self._listeners = listeners
        self._claimed_epoch = self._claim()

        def open_all() -> None:
            try:
                self._close_unassigned()
                open_logs()
            except Exception as error:
                then(error)
                return
            self.lifecycle.ready_to_unfence()

        self.lifecycle.on_caught_up.append(lambda: self._publish_from(open_all))
        self.lifecycle.on_running += [self._report_directories, lambda: then(None)]
        self.lifecycle.start()

    def _claim(self) -> int:
        """The epoch to claim (`previous_epoch`). After a crash the logs are recovered first, to find lost records.

        None if a replica in an ELR is lost: its log may be a new one that was not filled yet (R28).
        """
        broker = self._broker
        node_id = broker.config.node_id
        for topic in broker.image.topics.values():
            for one in topic.partitions.values():
                if node_id in one.elr and one.directories[one.replicas.index(node_id)] == LOST_DIRECTORY:
                    return NO_CLAIM
        is_damaged = False
        if broker.config[LOG_SYNC] == ALWAYS and not all(one.had_clean_shutdown for one in broker.log_dirs.dirs):
            is_damaged = not self._recover() or bool(broker.partitions.offline)
        return claimed_epoch(broker.config, self._files, broker.log_dirs, is_damaged=is_damaged)

    def _recover(self) -> bool:
        """Open the existing logs, so that they are recovered; return whether all of them are whole."""
        broker = self._broker
        existing = set(broker.log_dirs.not_opened())
        is_whole = True
        for topic in broker.image.topics.values():
            for index in topic.partitions:
                key = (topic.name, index)
                if key not in existing or key in broker.log_dirs.logs:
                    continue
                self._recovered.add(key)
                try:
                    broker.log_dirs.open_log(
                        topic.name,
                        index,
                        broker.partitions.config_of(broker.image, topic.name),
                        topic_id=topic.topic_id,
                        now_ms=broker.loop.now_ms(),
                        now=broker.loop.now(),
                        producer_expiration_ms=broker.config[PRODUCER_ID_EXPIRATION_MS],
                    )
                except (DamagedLog, CorruptCheckpoint, KafkaError, OSError):
                    is_whole = False  # the error is reported when the partition is opened
        return is_whole

    def _close_unassigned(self) -> None:
        """Close the recovered logs of replicas that are not here any longer: their directories become strays."""
        broker = self._broker
        logs = broker.log_dirs.logs
        for name, index in self._recovered & logs.keys():
            partition = broker.image.partition(name, index)
            if partition is None or broker.config.node_id not in partition.replicas:
                logs.pop((name, index)).close()

    def _report_directories(self) -> None:
        self._broker.runner.start(self.assignments.look_at_all(), _ignore)

    def _report_replicas(self, replicas: Sequence[tuple[bytes, int]]) -> None:
        self._broker.runner.start(self.assignments.look_at(replicas), _ignore)

    async def leave(self) -> None:
        """The controlled shutdown: wait until the controller has moved the leaders away, for a bounded time."""
        may_stop = trio.Event()
        self.lifecycle.begin_controlled_shutdown(lambda _is_drained: may_stop.set())
        await may_stop.wait()

    def close(self) -> None:
        """Stop fetching and sending."""
        self.lifecycle.close()
        self.fetchers.stop()
        self._broker.inter_broker.close()
        self._broker.controller_channel.close()

    def _endpoint(self, node_id: int) -> tuple[str, int] | None:
        """The address of a broker's inter-broker listener in the metadata."""
        registered = self._broker.image.brokers.get(node_id)
        for endpoint in () if registered is None else registered.endpoints:
            if endpoint.name == self._inter_broker_listener:
                return endpoint.host, endpoint.port
        return None

    def _follow_registrations(self, delta: ClusterDelta) -> None:
        for node_id in delta.changed_brokers:
            self._broker.inter_broker.registration_changed(node_id)

    def _hasten_shutdown(self, _: ClusterDelta) -> None:
        """While a broker waits to stop, report each change at once: the controller lets it stop when all have them."""
        brokers = self._broker.image.brokers.values()
        if any(broker.in_controlled_shutdown and not broker.fenced for broker in brokers):
            self.lifecycle.heartbeat_now()

    def _registration(self, _: int) -> BrokerRegistrationRequest:
        broker = self._broker
        return registration_request(
            broker.config,
            cluster_id=broker.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=self._listeners,
            log_dirs=broker.log_dirs,
            previous_epoch=self._claimed_epoch,
        )

    def _persist_epoch(self, epoch: int, then: Callable[[], None]) -> None:
        """Write the broker epoch in a thread. The same process may claim it when it registers again."""
        broker = self._broker
        self._claimed_epoch = epoch

        def steps() -> Steps[None]:
            yield lambda: write_epoch(broker.config, self._files, broker.log_dirs, epoch)

        def failed(error: Exception) -> None:
            logger.warning("Cannot write the broker epoch, so that a start after a crash claims none: %s", error)
            then()

        broker.runner.start(steps(), lambda _: then(), failed)

    def _offline_dirs(self) -> list[Uuid]:
        return [
            uuid_from_text(log_dir.directory_id)
            for log_dir in self._broker.log_dirs.dirs
            if log_dir.failure is not None
        ]


def _ignore(_: None) -> None:
    """The directories are reported when the controller answers."""


def tokens(broker: Broker) -> Callable[[str], Callable[[], str]]:
    """Return a function that takes a token file of this node and returns a function that returns its current token."""

    def of_file(path: str) -> Callable[[], str]:
        from barnabas.broker.security.token_file import TokenFile

        return TokenFile(path, broker.loop, broker.runner).current

    return of_file


class RemoteController:
    """The controllers of a broker that is none itself: the channel to them, and the metadata that they write."""

    def __init__(self, broker: Broker, connect: Connect) -> None:
        config, loop = broker.config, broker.loop
        voters = parse_voters(config[CONTROLLER_QUORUM_VOTERS])
        bootstrap = [parse_address(address, address) for address in config[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]]
        login = logins(controller_login(config), broker.random_bytes, tokens(broker))
        self._broker = broker
        self._quorum = QuorumLeader(bootstrap, {voter.id: (voter.host, voter.port) for voter in voters})
        self.channel = RemoteChannel(
            loop,
            connect,
            self._quorum,
            client_id=f"broker-{config.node_id}",
            timeout_s=config[CONTROLLER_SOCKET_TIMEOUT_MS] / 1000,
            backoff_s=config[CONTROLLER_QUORUM_RETRY_BACKOFF_MS] / 1000,
            software_version=__version__,
            login=login,
        )
        self.copy = MetadataCopy(loop, config, broker.log_dirs, broker.log_dir_failures)
        loader = MetadataLoader(config)
        self.observer = MetadataObserver(
            loop,
            config,
            broker.runner,
            self._quorum,
            self.copy,
            loader,
            connect,
            cluster_id=broker.cluster_id,
            halt=broker.halt,
            software_version=__version__,
            login=login,
        )
        self.metadata = RemoteMetadata(
            loop,
            config,
            self.channel,
            loader,
            broker_epoch=lambda: broker.lifecycle.broker_epoch,
            new_id=broker.log_dirs.new_id,
        )
        self.observer.on_applied.append(self.metadata.applied)

    async def catch_up(self) -> None:
        """Fetch the metadata: wait until the image is as new as the controllers' log was."""
        caught_up = trio.Event()
        self.observer.on_caught_up.append(caught_up.set)
        self.observer.start()
        await caught_up.wait()
        self.metadata.loader.apply_dynamic_configs()

    def close(self) -> None:
        """Stop following the metadata."""
        self.metadata.topics.close()
        self.observer.close()
