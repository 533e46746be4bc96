"""The context of a request, and the broker that it gives access to.

`Broker` holds the parts of a broker; each part does its own work and takes only the other parts that it needs. Only
the handlers in `broker.apis`, the background jobs, `broker.start.builder` and `broker.server` use `Broker`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import AUTHORIZER_CLASS_NAME, BROKER_RACK, REQUEST_TIMEOUT_MS
from barnabas.broker.config.keys.own import METRICS_LABELS_MAX, METRICS_LISTENER
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.coord.cluster.delta import QUOTAS

logger = logging.getLogger("kafka.server.KafkaServer")

if TYPE_CHECKING:
    from barnabas.broker.config.group_configs import GroupConfigs
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.coordinators.groups import GroupCoordinators
    from barnabas.broker.coordinators.latest_offsets import LatestOffsets
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.coordinators.share_coordinators import ShareCoordinators
    from barnabas.broker.coordinators.share_states import ShareStates
    from barnabas.broker.coordinators.transactions import TransactionCoordinators
    from barnabas.broker.event_loop.limited_log import LimitedLog
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.metadata.active_controller import ActiveController
    from barnabas.broker.metadata.controller import Controller
    from barnabas.broker.metadata.controller_channel import ControllerChannel
    from barnabas.broker.metadata.lifecycle import BrokerLifecycle
    from barnabas.broker.metadata.metadata import Metadata
    from barnabas.broker.metadata.producer_ids import ProducerIds
    from barnabas.broker.metrics.client_metrics import ClientMetrics
    from barnabas.broker.metrics.meter import Meter
    from barnabas.broker.net.client.inter_broker import InterBroker
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.encoded_response import EncodedResponse
    from barnabas.broker.replicas.leader.fetch_sessions import FetchSessions
    from barnabas.broker.replicas.load import Load
    from barnabas.broker.replicas.log_dirs.dir_moves import DirMoves
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.broker.security.authorizer import Authorizer
    from barnabas.broker.security.client_quotas import ClientQuotas
    from barnabas.broker.security.ip_rates import ConnectionRates
    from barnabas.broker.security.tls import Tls
    from barnabas.broker.security.usage import Usage
    from barnabas.broker.sharing.share_partitions import SharePartitions
    from barnabas.broker.world import World
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.security.acls import Operation, ResourceType
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.wire.api_keys import ApiKey
    from barnabas.wire.errors import ErrorCode
    from barnabas.wire.principal import KafkaPrincipal
    from barnabas.wire.types import Uuid


def new_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A random uuid of version 4, which never begins with a dash in Kafka's text form."""
    while True:
        value = bytearray(random_bytes(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if value[0] >> 2 != 62:  # base64's 62 is "-": it would look like an option on a command line
            return bytes(value)


class Broker:
    """The parts of one process. `broker.start.builder` creates and connects them.

    A process that is only a controller (`broker.start.controller_builder`) has `controller`, `metadata`,
    `log_dirs`, `log_dir_failures` and `runner`; nothing that it serves uses another part.
    """

    controller: Controller
    """Changes the metadata; only of nodes that are a controller, and only for what a controller serves."""
    lifecycle: BrokerLifecycle
    """This broker's registration and session; only in a cluster."""
    active_controller: ActiveController
    """The controller of a cluster; only of nodes with a controller listener."""
    controller_channel: ControllerChannel
    """Sends requests to the active controller; only in a cluster."""
    inter_broker: InterBroker
    """Sends requests to other brokers; only in a cluster."""
    metadata: Metadata
    group_coordinators: GroupCoordinators
    log_dir_failures: LogDirFailures
    log_dirs: LogDirs
    partitions: Partitions
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    runner: StepRunner
    services: BrokerServices
    share_coordinators: ShareCoordinators
    share_states: ShareStates
    transaction_coordinators: TransactionCoordinators

    def __init__(self, config: ServerConfig, world: World, *, cluster_id: str) -> None:
        self.loop = world.make_loop(world.now, world.now_ms)
        self.started_at = self.loop.now()
        self.random_bytes = world.random_bytes
        self.config = config
        self.node_id = config.node_id
        self.cluster_id = cluster_id
        self.encoded_api_versions: dict[int, tuple[int, EncodedResponse]] = {}
        """The answers of ApiVersions by version, each with the metadata's offset that it was made at."""
        self.client_quotas: ClientQuotas | None = None
        """The quotas of clients; None while there are none."""
        self.connection_rates: ConnectionRates = {}
        """The quotas of addresses."""
        self.on_quotas: list[Callable[[], None]] = []
        """Called when quotas have changed."""
        self.meter: Meter | None = None
        """Counts for the listener of metrics; None without one."""
        if config[METRICS_LISTENER] is not None:
            from barnabas.broker.metrics.meter import Meter

            self.meter = Meter(self.loop.now, config[METRICS_LABELS_MAX])
        self.is_stopping = False
        self.on_halt: Callable[[], None] | None = None
        """Called when the broker cannot continue; `halt_reason` is the reason."""
        self.halt_reason: str | None = None
        self.tls: Tls | None = None
        """The certificates of this node, if one of its listeners has TLS."""
        self._advertised = config.advertised_listeners
        self._rack = config[BROKER_RACK]
        self.authorizer: Authorizer | None = None
        """Decides what requests may do; None allows everything."""

    @property
    def image(self) -> ClusterImage:
        """The current metadata of the cluster."""
        return self.metadata.image

    @cached_property
    def load(self) -> Load:
        """The load of this broker; created when it is first used."""
        from barnabas.broker.replicas.load import Load

        return Load(self.loop, self.started_at, self.partitions, self.log_dirs, self.runner)

    @cached_property
    def dir_moves(self) -> DirMoves:
        """The moves between log directories; created for the first."""
        from barnabas.broker.replicas.log_dirs.dir_moves import DirMoves

        return DirMoves(
            self.loop,
            self.config,
            self.log_dirs,
            self.log_dir_failures,
            self.partitions,
            self.runner,
            self._assign_directory,
        )

    def _assign_directory(self, topic_id: Uuid, index: int, directory: Uuid, then: Callable[[ErrorCode], None]) -> None:
        """Tell the controller in which log directory a replica is."""
        from barnabas.broker.metadata.directory_assignments import assign_directory

        registered = self.image.brokers.get(self.node_id)
        epoch = -1 if registered is None else registered.epoch
        request, answered = assign_directory(self.node_id, epoch, directory, topic_id, index, then)
        if "controller_channel" in self.__dict__:
            self.controller_channel.send(request, answered)
        else:
            self.controller.request(request, 0, answered)

    @cached_property
    def group_configs(self) -> GroupConfigs:
        """The settings of groups; created when a coordinator first needs them, since a start does not."""
        from barnabas.broker.config.group_configs import GroupConfigs

        group_configs = GroupConfigs(self.config, lambda: self.image)
        self.metadata.on_group_config_change.append(group_configs.apply)
        return group_configs

    @cached_property
    def client_metrics(self) -> ClientMetrics:
        """Client telemetry; created with its first request, or by the listener of metrics."""
        from barnabas.broker.metrics.client_metrics import ClientMetrics

        return ClientMetrics(self.loop, self.config, self.metadata, lambda: new_uuid(self.random_bytes))

    @cached_property
    def needless_log_ins(self) -> LimitedLog:
        """Lines about clients that log in on a listener without SASL; created for the first."""
        from barnabas.broker.event_loop.limited_log import LimitedLog

        selector = logging.getLogger("kafka.network.Selector")
        return LimitedLog(self.loop, selector, logging.WARNING, "log-ins on listeners without SASL")

    @cached_property
    def latest_offsets(self) -> LatestOffsets:
        """Asks other brokers for the ends of partitions; created with the first request."""
        from barnabas.broker.coordinators.latest_offsets import LatestOffsets

        timeout_s = self.config[REQUEST_TIMEOUT_MS] / 1000
        return LatestOffsets(self.loop, lambda node_id: self.inter_broker.client(node_id, "offsets"), timeout_s)

    @cached_property
    def share_partitions(self) -> SharePartitions:
        """The partitions that share groups read; created when the first of their members fetches."""
        from barnabas.broker.sharing.share_partitions import SharePartitions

        return SharePartitions(
            self.services,
            self.share_states,
            self.share_coordinators.on_reset,
            self.group_configs,
            self.metadata.auto_create_dead_letter_queue,
            lambda: self.is_stopping,
        )

    def follow_quotas(self, delta: ClusterDelta) -> Steps[None] | None:
        """Take over the quotas of clients from the metadata, if they have changed."""
        return self.take_quotas() if QUOTAS in delta.other_changes else None

    def take_quotas(self) -> Steps[None]:
        """Take over the quotas of clients from the metadata."""
        from barnabas.broker.security.client_quotas import ClientQuotas
        from barnabas.broker.security.ip_rates import connection_rates_in_steps

        quotas = self.client_quotas or ClientQuotas(self.config, self.loop.state_now)
        has_any = yield from quotas.apply(self.image.quotas)
        self.client_quotas = quotas if has_any else None
        self.connection_rates = yield from connection_rates_in_steps(self.image.quotas)
        for follower in self.on_quotas:
            call_guarded("Applying changed quotas", follower)

    def endpoints(self, ctx: RequestContext, *, with_fenced: bool = False) -> list[tuple[int, str, int, str | None]]:
        """(node id, host, port, rack) of the live brokers, as advertised to clients of this connection's listener.

        For this broker without advertised.listeners that is the address that the client has connected to. Brokers that
        do not have this listener are left out, as in Kafka (R16).
        """
        connection = ctx.connection
        listener = connection.listener
        advertised = self._advertised.get(listener)
        if advertised is None:
            own = (self.node_id, connection.local_host, connection.local_port, self._rack)
        else:
            own = (self.node_id, advertised.host, advertised.port, self._rack)
        if self.image.brokers.keys() <= {self.node_id}:
            return [own]
        endpoints = []
        for _, broker in sorted(self.image.brokers.items()):
            if broker.fenced and not with_fenced:
                continue
            if broker.id == self.node_id:
                endpoints.append(own)
                continue
            endpoints += [
                (broker.id, endpoint.host, endpoint.port, broker.rack)
                for endpoint in broker.endpoints
                if endpoint.name == listener
            ]
        return endpoints

    def any_live_broker(self) -> int:
        """The controller id that clients get: the id of any live broker, since each forwards; -1 if there is none."""
        if self.image.brokers.keys() <= {self.node_id}:
            return self.node_id
        live = self.image.live_brokers()
        if not live:
            return -1
        return live[int.from_bytes(self.random_bytes(2), "big") % len(live)].id

    def add_authorizer(self) -> None:
        """Have an authorizer decide if one is configured; it follows the metadata, once it has loaded the ACLs."""
        if not self.config[AUTHORIZER_CLASS_NAME]:
            return
        from barnabas.broker.security.authorizer import authorizer_of

        authorizer = self.authorizer = authorizer_of(self.config)
        self.metadata.on_change.append(lambda delta: authorizer.apply(self.image, delta))

    def halt(self, reason: str) -> None:
        """Stop the broker: `reason` says why it cannot continue."""
        if self.halt_reason is None:
            self.halt_reason = reason
            logger.critical("[KafkaServer id=%d] stopping, since %s", self.node_id, reason)
            if self.on_halt is not None:
                self.on_halt()


class RequestContext:
    """What a handler knows about its request beyond the request's fields."""

    __slots__ = (
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "now",
        "refused_topics",
    )

    usage: Usage | None = None
    """What the request uses of its client's quotas; None while there are no quotas (`MeteredContext`)."""

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        api_key: ApiKey,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        now: float,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.now = now
        self.refused_topics: Collection[bytes | str] = ()
        """The topics, by name or id as the request names them, that the handler has found it may not use."""

    @property
    def listener(self) -> str:
        """The name of the listener that the client has connected to."""
        return self.connection.listener

    @property
    def principal(self) -> KafkaPrincipal:
        """The principal that has sent the request."""
        return self.connection.principal

    @property
    def peer_host(self) -> str:
        """The client's address."""
        return self.connection.peer_host

    @property
    def granted_topics(self) -> dict[int, set[str | bytes]]:
        """The authorizer's decisions that the connection keeps (`apis.access`)."""
        return self.connection.granted_topics

    @property
    def client_host(self) -> str:
        """The client's address in the form that Kafka shows in groups: `/127.0.0.1`."""
        return "/" + self.peer_host

    # What the request may do. Without an authorizer that is everything.

    def is_allowed(self, operation: Operation, resource_type: ResourceType, name: str, **log: bool) -> bool:
        """Whether the request may do something to a resource; `log` as in `Authorizer.is_allowed`."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_allowed(self, operation, resource_type, name, **log)

    def is_allowed_on_cluster(self, operation: Operation, **log: bool) -> bool:
        """Whether the request may do something to the cluster."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_allowed_on_cluster(self, operation, **log)

    def refused(
        self, operation: Operation, resource_type: ResourceType, names: Iterable[str], **log: bool
    ) -> Collection[str]:
        """The resources that the request may not do something to."""
        authorizer = self.broker.authorizer
        return () if authorizer is None else authorizer.refused(self, operation, resource_type, names, **log)

    @property
    def local_address(self) -> tuple[str, int]:
        """The address of this broker that the client has connected to; advertised when nothing else is configured."""
        return self.connection.local_host, self.connection.local_port


class MeteredContext(RequestContext):
    """The context of a request of a broker with quotas."""

    __slots__ = ("usage",)

    usage: Usage | None


class ForwardedContext(RequestContext):
    """The context of a request in an Envelope: it has the principal and address of the broker's client (KIP-590)."""

    __slots__ = ("_peer_host", "_principal")

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        api_key: ApiKey,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        now: float,
        principal: KafkaPrincipal,
        peer_host: str,
    ) -> None:
        super().__init__(broker, connection, api_key, api_version, correlation_id, client_id, now)
        self._principal = principal
        self._peer_host = peer_host

    @property
    def principal(self) -> KafkaPrincipal:
        """The principal that has sent the request to the broker that forwards it."""
        return self._principal

    @property
    def granted_topics(self) -> dict[int, set[str | bytes]]:
        """Empty: the connection is the broker's, not its client's."""
        return {}

    @property
    def peer_host(self) -> str:
        """The address of that broker's client."""
        return self._peer_host
