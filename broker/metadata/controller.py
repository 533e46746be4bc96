"""The controller of a single-node cluster: requests become records of the metadata log, which the broker then follows.

Every change takes the same steps: `LocalController` validates the request, `MetadataLog` writes, syncs and replays the
records, the subscribers (partitions, coordinators, configuration) apply the change, and the request is answered. So a
client that has its answer finds the change in effect, also after a restart. Changes are made one after the other
(`change_queue`), in slices and with syncs in threads (`broker.event_loop.steps`); only a start and a stop wait for
them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.config.keys import own
from barnabas.broker.config.keys.general import BROKER_RACK, DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from barnabas.broker.config.listeners import SECURITY_PROTOCOLS, Endpoint
from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.broker.event_loop.steps import run_in_place
from barnabas.broker.metadata.change_queue import Answer, ChangeQueue
from barnabas.broker.metadata.loader import MetadataLoader
from barnabas.broker.metadata.log.metadata_log import MetadataLog
from barnabas.coord.cluster.node_records import (
    SUPPORTED_FEATURES,
    allocate_producer_ids,
    election_records,
    registration_records,
    shutdown_records,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import BrokerEndpoint
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.metadata.controller_quorum import ControllerQuorum
    from barnabas.coord.cluster.changes.topic_changes import TopicDefaults
    from barnabas.coord.cluster.cluster_controller import ClusterController
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.local_controller import LocalController, Outcome
    from barnabas.coord.machine import Moment
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.wire.messages.configs import (
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )
    from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsResponse
    from barnabas.wire.schema import Message

R = TypeVar("R")

logger = logging.getLogger("kafka.server.Controller")
_tokens_log = logging.getLogger("kafka.controller.DelegationTokenControlManager")

SNAPSHOT_RETRY_S: Final = 1.0
"""When a due snapshot that must wait for the end of a metadata transaction is checked again, seconds."""
_WILDCARDS: Final = {"", "0.0.0.0", "::"}


class Controller:
    """Changes the cluster's metadata and has the broker apply the changes."""

    supported_features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES
    """Feature levels this broker can work with, lowest and highest."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        runner: StepRunner,
        *,
        cluster_id: str,
        is_of_cluster: bool = False,
    ) -> None:
        self._loop = loop
        self._cluster_id = cluster_id
        self._config = config
        self._log_dirs = log_dirs
        self._log = MetadataLog(loop, config, log_dirs, failures, is_of_cluster=is_of_cluster)
        self._queue = ChangeQueue(runner)
        self.loader = MetadataLoader(config)
        self._is_snapshot_queued = False
        self._snapshot_timer: Timer | None = None
        self._refusals = LimitedLog(loop, logger, logging.WARNING, "changes of the metadata that were refused")
        self.on_change = self.loader.on_change
        self.on_config_change = self.loader.on_config_change
        self.on_group_config_change = self.loader.on_group_config_change
        self.has_topic = self.loader.has_topic

    @property
    def image(self) -> ClusterImage:
        """The cluster's current metadata."""
        return self.loader.image

    @cached_property
    def local(self) -> LocalController:
        """Validates requests against the image; imported for the first one, since a start does not need it."""
        from barnabas.broker.config.config_schema import config_schema
        from barnabas.coord.cluster.local_controller import LocalController

        config = self._config
        schema = config_schema([endpoint.name for endpoint in config.listeners])
        return LocalController(self.image, schema, config, config.node_id, self._log_dirs.new_id)

    @cached_property
    def cluster(self) -> ClusterController:
        """Validates requests of brokers, and those about several of them."""
        from barnabas.broker.metadata.controller_requests import cluster_controller

        return cluster_controller(self.image, self._config, self._cluster_id, self._log_dirs.new_id)

    @cached_property
    def quorum(self) -> ControllerQuorum:
        """The state of the readers of the metadata log; a single node has none."""
        from barnabas.broker.metadata.controller_quorum import ControllerQuorum

        return ControllerQuorum(
            self._loop, self._log, self._config.node_id, self._cluster_id, uuid_from_text(self._log.directory_id)
        )

    def open(self) -> None:
        """Read the metadata; a new log gets its first records, partitions without a leader get this node.

        After a crash every partition gets a new leader epoch.
        """
        self._log.open()
        self.loader.image = self._log.image
        if self._log.is_new:
            run_in_place(self._log.write(self._log.bootstrap_records(), False))
        else:
            crashed = not all(log_dir.had_clean_shutdown for log_dir in self._log_dirs.dirs)
            records = election_records(self.image, self._config.node_id, after_crash=crashed)
            run_in_place(self._log.write(records, False))
        self.loader.apply_dynamic_configs()

    def register_broker(self, listeners: Sequence[Endpoint]) -> None:
        """Register this node with its bound addresses and its log directories; part of the start.

        Waits for the sync of these records and of those that `open` has written.
        """
        advertised = self._config.advertised_listeners
        endpoints = [advertised.get(listener.name, listener) for listener in listeners]
        records = registration_records(
            self._config.node_id,
            incarnation_id=self._log_dirs.new_id(),
            endpoints=[
                BrokerEndpoint(
                    name=endpoint.name,
                    host="localhost" if endpoint.host in _WILDCARDS else endpoint.host,
                    port=endpoint.port,
                    security_protocol=SECURITY_PROTOCOLS.index(self._config.protocol_of(endpoint.name)),
                )
                for endpoint in endpoints
            ],
            directories=[uuid_from_text(log_dir.directory_id) for log_dir in self._log_dirs.dirs],
            rack=self._config[BROKER_RACK],
            epoch=self._log.end_offset,
        )
        run_in_place(self._log.write(records))
        self._plan_snapshot()

    def set_passwords(self, mechanism: str, passwords: Mapping[str, str], random_bytes: Callable[[int], bytes]) -> None:
        """Make credentials of SCRAM, by user, unless they have these passwords already; part of the start."""
        from barnabas.coord.security.scram_changes import password_records

        records = password_records(self.image.scram, mechanism, passwords, self.image.metadata_version, random_bytes)
        run_in_place(self._log.write(records, False))

    def close(self) -> int:
        """Fence this node, which stops serving; returns the broker epoch of its registration, -1 if there is none.

        A change in progress is finished first, those behind it are refused. Waits for the disk.
        """
        self._queue.close()
        self._cancel_snapshot()
        registered = self.image.brokers.get(self._config.node_id)
        if registered is None:
            return -1
        try:
            run_in_place(self._log.write(shutdown_records(self.image, registered)))
        except (KafkaError, OSError) as error:
            logger.error("Cannot write the shutdown of this broker to the metadata log: %s", error)
        return registered.epoch

    def commit(self, validate: Callable[[], Outcome[R] | Steps[Outcome[R]]], then: Answer[R]) -> None:
        """Change the metadata: `then` is called with the response once the change is durable and in effect.

        `validate` is called when all earlier changes are in effect; it returns the records and the response, or a
        generator of steps that does. `then` is called with a KafkaError that it raises, or KAFKA_STORAGE_ERROR when
        the log cannot be written.
        """
        self._queue.add(lambda: self._change(validate), then)

    def request(self, message: Message, version: int, then: Answer[Any]) -> None:
        """Answer a request of `controller_requests`; errors of the whole request are KafkaError."""
        from barnabas.broker.metadata.controller_requests import validate

        self.commit(lambda: validate(self, message, version), then)

    def at(self) -> Moment:
        """The current time, on both clocks."""
        from barnabas.coord.machine import Moment

        return Moment(self._loop.now(), self._loop.now_ms())

    @property
    def next_offset(self) -> int:
        """The offset that the next record of the metadata log will have."""
        return self._log.end_offset

    def _write_snapshot_if_due(self) -> None:
        """Write a snapshot when the changes that wait now are in effect."""
        if self._log.is_snapshot_due and not self._is_snapshot_queued:
            self._is_snapshot_queued = True
            self._queue.add(self._log.snapshot, self._snapshot_ended)

    def _snapshot_ended(self, _: KafkaError | None) -> None:
        self._is_snapshot_queued = False
        self._plan_snapshot()

    def _plan_snapshot(self, at_least: float = 0.0) -> None:
        """Set a timer that checks whether enough time has passed for a snapshot, unless one is set already."""
        deadline = self._log.snapshot_deadline
        if self._snapshot_timer is None and deadline is not None and not self._is_snapshot_queued:
            self._snapshot_timer = self._loop.timers.at(max(deadline, at_least), self._look_for_snapshot)

    def _look_for_snapshot(self) -> None:
        self._snapshot_timer = None
        self._write_snapshot_if_due()
        self._plan_snapshot(self._loop.now() + SNAPSHOT_RETRY_S)

    def _cancel_snapshot(self) -> None:
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
            self._snapshot_timer = None

    def _change(self, validate: Callable[[], Outcome[R] | Steps[Outcome[R]]]) -> Steps[R]:
        outcome = validate()
        if isinstance(outcome, Generator):
            outcome = yield from outcome
        if outcome.records:
            yield None
            self._check_room(outcome.records)
            delta = yield from self._log.write(outcome.records)
            self._write_snapshot_if_due()
            self._plan_snapshot()
            yield from self.loader.publish(delta)
        return outcome.response

    def _check_room(self, records: Sequence[Message]) -> None:
        """KafkaError(POLICY_VIOLATION), with a line in the log, if these records would exceed a metadata limit."""
        from barnabas.coord.cluster.changes.metadata_limits import MetadataLimits, check_room

        config = self._config
        limits = MetadataLimits(
            partitions=config[own.PARTITIONS_MAX],
            acls=config[own.ACLS_MAX],
            scram_credentials=config[own.SCRAM_CREDENTIALS_MAX],
            delegation_tokens=config[own.DELEGATION_TOKENS_MAX],
            delegation_tokens_of_owner=config[own.DELEGATION_TOKENS_OF_OWNER_MAX],
            client_quotas=config[own.CLIENT_QUOTAS_MAX],
            config_resources=config[own.CONFIG_RESOURCES_MAX],
        )
        try:
            check_room(self.image, records, limits)
        except KafkaError as error:
            self._refusals.line("", "A change of the metadata was refused: %s", error)
            raise

    # Requests of the broker itself

    def topic_defaults(self) -> TopicDefaults:
        """The defaults for topics whose creation leaves partitions or replicas to the broker."""
        from barnabas.coord.cluster.changes.topic_changes import TopicDefaults

        config = self._config
        return TopicDefaults(
            config[NUM_PARTITIONS],
            config[DEFAULT_REPLICATION_FACTOR],
            clamps_replicas=config.clamps_replicas,
            ignores_case=self._log_dirs.ignores_case,
        )

    def auto_create(self, names: Iterable[str], then: Callable[[Mapping[str, KafkaError]], None]) -> None:
        """Create the topics that are missing; `then` is called when all are in effect, with the errors by name.

        If all exist, it is called before this returns.
        """
        names = list(dict.fromkeys(names))
        if all(map(self.has_topic, names)):
            then({})
            return

        def validate() -> Outcome[CreateTopicsResponse]:
            from barnabas.broker.metadata.automatic_topics import automatic_topic

            missing = [name for name in names if name not in self.image.topics]
            return self._creation([automatic_topic(name, self._config) for name in missing])

        self.commit(validate, lambda outcome: then(_creation_errors(names, outcome)))

    def auto_create_dead_letter_queue(self, name: str, then: Callable[[KafkaError | None], None]) -> None:
        """Create a share group's dead-letter queue (KIP-1191) unless it exists; then call `then`, with any error."""

        def validate() -> Outcome[CreateTopicsResponse]:
            from barnabas.broker.metadata.automatic_topics import dead_letter_queue

            return self._creation([] if name in self.image.topics else [dead_letter_queue(name)])

        self.commit(validate, lambda outcome: then(_creation_errors([name], outcome).get(name)))

    def create_topics(self, topics: Callable[[], list[CreatableTopic]], then: Answer[CreateTopicsResponse]) -> None:
        """Create topics that the broker itself needs; `topics` is called when all earlier changes are in effect."""
        self.commit(lambda: self._creation(topics()), then)

    def remove_expired_tokens(self) -> None:
        """Remove the delegation tokens that can no longer be used (KIP-48); they are refused before that, too."""
        from barnabas.coord.cluster.local_controller import Outcome
        from barnabas.coord.security.tokens import expired_tokens

        def log_removal(outcome: int | KafkaError) -> None:
            if isinstance(outcome, KafkaError):
                _tokens_log.error("Expired delegation tokens could not be removed: %s. Trying again", outcome)
            elif outcome:
                _tokens_log.info("Removed %d expired delegation tokens", outcome)

        def validate() -> Outcome[int]:
            records = expired_tokens(self.image.tokens, self.at().now_ms)
            return Outcome(records, len(records))

        self.commit(validate, log_removal)

    def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """DescribeConfigs (32) of all resource types but broker loggers."""
        return self.local.describe_configs(request)

    def list_config_resources(self, request: ListConfigResourcesRequest, version: int) -> ListConfigResourcesResponse:
        """ListConfigResources (74)."""
        return self.local.list_config_resources(request, version)

    def _creation(self, topics: list[CreatableTopic]) -> Outcome[CreateTopicsResponse]:
        from barnabas.wire.messages.topics import CreateTopicsRequest

        return self.local.create_topics(CreateTopicsRequest(topics=topics), self.topic_defaults())

    def allocate_producer_ids(self, then: Answer[tuple[int, int]]) -> None:
        """Allocate a block of producer ids that were never used; `then` gets the first id and the number of ids."""

        def validate() -> Outcome[tuple[int, int]]:
            from barnabas.coord.cluster.local_controller import Outcome

            records, block = allocate_producer_ids(self.image, self._config.node_id)
            return Outcome(records, (block.start, len(block)))

        self.commit(validate, then)


def _creation_errors(names: Iterable[str], outcome: CreateTopicsResponse | KafkaError) -> dict[str, KafkaError]:
    """The errors of a creation of topics, by name."""
    if isinstance(outcome, KafkaError):
        return dict.fromkeys(names, outcome)
    return {
        result.name: KafkaError(ErrorCode(result.error_code), result.error_message)
        for result in outcome.topics
        if result.error_code
    }
