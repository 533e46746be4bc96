"""Client telemetry of one broker (KIP-714): returns subscriptions to clients, checks pushes and keeps their metrics.

The subscriptions are configs in the metadata. Pushed metrics are kept only if there is a listener that shows them
(`barnabas.metrics.listener`); without, a push is checked, read and dropped, as by Kafka without a plug-in.
Long pushes are read in steps; `PENDING_BYTES` bounds what waits for that. Source: Kafka 4.4 `ClientMetricsManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import TELEMETRY_MAX_BYTES
from barnabas.broker.config.keys.own import CLIENT_METRICS_MAX_BYTES, METRICS_LISTENER
from barnabas.coord.client_metrics import matching
from barnabas.coord.client_metrics.instances import (
    SUPPORTED_COMPRESSION_TYPES,
    ClientInstance,
    ClientInstances,
    check_instance_id,
)
from barnabas.coord.client_metrics.kept import KeptMetrics
from barnabas.coord.client_metrics.subscriptions import Subscriptions
from barnabas.coord.cluster.resources import CLIENT_METRICS
from barnabas.wire.batches.decompression import Source, decompressed_steps
from barnabas.wire.clients.otlp import read_metrics
from barnabas.wire.clients.protobuf import ProtobufError
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from barnabas.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from barnabas.wire.types import ZERO_UUID, Uuid, uuid_to_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.metadata.metadata import Metadata
    from barnabas.broker.net.connection import Connection
    from barnabas.coord.client_metrics.matching import ClientAttributes
    from barnabas.coord.cluster.delta import ClusterDelta

logger = logging.getLogger("kafka.server.ClientMetricsManager")

PENDING_BYTES: Final = 16 * 1024 * 1024
"""Most bytes of pushes that are being read; a push beyond it is answered THROTTLING_QUOTA_EXCEEDED, and comes again."""
ITEMS_OF_A_STEP: Final = 50
"""Fields and data points that are read in one step; usual data points take about 20 microseconds."""
STEP_S: Final = 0.001
"""How long a step reads, seconds: data points may have many attributes."""


class ClientMetrics:
    """The subscriptions, the client instances, and the metrics they have pushed."""

    def __init__(self, loop: Loop, config: ServerConfig, metadata: Metadata, new_uuid: Callable[[], Uuid]) -> None:
        self._loop = loop
        self._metadata = metadata
        self._new_uuid = new_uuid
        self._max_bytes = config[TELEMETRY_MAX_BYTES]
        self._instances = ClientInstances()
        self._subscriptions = Subscriptions()
        self._pending_bytes = 0
        self._timer: Timer | None = None
        self.kept: KeptMetrics | None = None
        """The pushed metrics, if there is a listener that shows them."""
        if config[METRICS_LISTENER] is not None:
            self.kept = KeptMetrics(config[CLIENT_METRICS_MAX_BYTES])
        for kind, name in metadata.image.configs:
            if kind == CLIENT_METRICS:
                self._update(name)
        metadata.on_change.append(self._apply)

    @property
    def instance_count(self) -> int:
        """The number of client instances that are known."""
        return len(self._instances)

    def _apply(self, delta: ClusterDelta) -> None:
        """Apply a change of the metadata."""
        for kind, name in delta.changed_configs:
            if kind == CLIENT_METRICS:
                self._update(name)

    def _update(self, name: str) -> None:
        try:
            self._subscriptions.update(name, self._metadata.image.config(CLIENT_METRICS, name))
        except KafkaError as error:  # written by a controller that allows more
            logger.warning("The client metrics subscription %r is ignored: %s", name, error)
            self._subscriptions.update(name, {})

    # -- requests, in steps

    def subscribe(
        self, request: GetTelemetrySubscriptionsRequest, client_id: str | None, connection: Connection
    ) -> Generator[None, None, GetTelemetrySubscriptionsResponse]:
        """The subscription of a client. KafkaError when it asks too early."""
        instance_id = request.client_instance_id
        if instance_id == ZERO_UUID:
            instance_id = self._new_uuid()
        instance = yield from self._instance(instance_id, client_id, connection)
        instance.check_get(self._loop.now())
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.granted.subscription_id,
            accepted_compression_types=list(SUPPORTED_COMPRESSION_TYPES),
            push_interval_ms=instance.granted.interval_ms,
            telemetry_max_bytes=self._max_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.granted.metrics),
        )

    def push(
        self, request: PushTelemetryRequest, client_id: str | None, connection: Connection
    ) -> Generator[None, None, PushTelemetryResponse]:
        """Check a push and keep its metrics. KafkaError when it is refused; INVALID_RECORD when it cannot be read."""
        check_instance_id(request.client_instance_id)
        size = len(request.metrics)
        copied = size if size <= self._max_bytes else 0
        if self._pending_bytes + copied > max(PENDING_BYTES, self._max_bytes):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._pending_bytes += copied
        try:
            payload = bytes(request.metrics[:copied])  # the frame is valid in the first step only
            instance = yield from self._instance(request.client_instance_id, client_id, connection)
            instance.check_push(request, size, self._loop.now(), self._max_bytes)
            if payload:
                yield from self._read(instance, payload, request.compression_type)
        finally:
            self._pending_bytes -= copied
        instance.last_error = ErrorCode.NONE
        return PushTelemetryResponse()

    def _instance(
        self, instance_id: Uuid, client_id: str | None, connection: Connection
    ) -> Generator[None, None, ClientInstance]:
        """The instance of a request: known, new, or with a new subscription because one has changed."""
        version = self._subscriptions.version
        instance, is_current = self._instances.find(instance_id, version)
        if instance is None or not is_current:
            client = _attributes(instance_id, client_id, connection) if instance is None else instance.client
            granted = yield from self._subscriptions.granted(instance_id, client)
            instance = ClientInstance(instance_id, client, granted, version)
            if self._instances.put(instance, connection, self._loop.now()):
                connection.on_close.append(lambda: self._instances.disconnected(connection))
        else:
            self._instances.touch(instance, self._loop.now())
        self._schedule()
        return instance

    def _read(self, instance: ClientInstance, payload: bytes, codec: int) -> Generator[None, None, None]:
        try:
            pieces = []
            for piece in decompressed_steps(codec, Source(payload), self._max_bytes):
                pieces.append(piece)
                yield
            yield from self._keep(instance, b"".join(pieces))
        except (CorruptRecord, ProtobufError) as error:
            logger.debug("The metrics of the client instance %s cannot be read: %s", uuid_to_text(instance.id), error)
            instance.last_error = ErrorCode.INVALID_RECORD
            raise KafkaError(ErrorCode.INVALID_RECORD) from None

    def _keep(self, instance: ClientInstance, metrics: bytes) -> Generator[None, None, None]:
        kept_metrics = self.kept
        client = None
        if kept_metrics is not None:
            client = kept_metrics.begin(instance.id, instance.client, self._loop.now() + instance.expiry_s)
            self._schedule()
        now = self._loop.now
        end = now() + STEP_S
        for count, point in enumerate(read_metrics(metrics), 1):
            if kept_metrics is not None and client is not None and point is not None:
                kept_metrics.add(client, point)
            if count % ITEMS_OF_A_STEP == 0 or now() >= end:
                yield
                end = now() + STEP_S

    # -- expiry

    def _schedule(self) -> None:
        """Have `_expire` called at the next deadline, unless it is called before that anyway."""
        deadlines = [self._instances.next_deadline(), None if self.kept is None else self.kept.next_deadline()]
        earliest = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if earliest is None or (self._timer is not None and self._timer.deadline <= earliest):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.timers.at(earliest, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.now()
        self._instances.expire(now)
        if self.kept is not None:
            self.kept.expire(now)
        self._schedule()


def _attributes(instance_id: Uuid, client_id: str | None, connection: Connection) -> ClientAttributes:
    name, version = connection.client_software
    return {
        matching.CLIENT_INSTANCE_ID: uuid_to_text(instance_id),
        matching.CLIENT_ID: client_id,
        matching.CLIENT_SOFTWARE_NAME: name or "unknown",
        matching.CLIENT_SOFTWARE_VERSION: version or "unknown",
        matching.CLIENT_SOURCE_ADDRESS: connection.peer_host,
        matching.CLIENT_SOURCE_PORT: str(connection.peer_port),
    }
