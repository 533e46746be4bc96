"""The client instances that ask for subscriptions and push metrics, and whether a request of one comes too early.

An instance is known by the id that the broker has given it. At most `MAX_INSTANCES` are kept, the most recently used
ones; one is forgotten when its connection closes, or when it has not been heard of for three push intervals, a minute
at least. A client whose instance was forgotten, or that comes from another broker, has a new one made with its next
request. Source: Kafka 4.4 `ClientMetricsManager`, `ClientMetricsInstance`.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING, Final

from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.types import ONE_UUID, ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Hashable

    from barnabas.coord.client_metrics.matching import ClientAttributes
    from barnabas.coord.client_metrics.subscriptions import Granted
    from barnabas.wire.messages.telemetry import PushTelemetryRequest

MAX_INSTANCES: Final = 16_384
EXPIRY_S: Final = 60.0
EXPIRY_INTERVALS: Final = 3
SUPPORTED_COMPRESSION_TYPES: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy, by preference; 0 is no compression, which is always accepted."""
_RESERVED = frozenset({ZERO_UUID, ONE_UUID})
"""Kafka's `Uuid.RESERVED`: no client has these."""
_ASKS_AGAIN = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
"""After these errors a client asks for its subscription at once."""


class ClientInstance:
    """One client and what it was asked to push."""

    __slots__ = ("_last_get", "_last_push", "client", "granted", "id", "is_terminating", "last_error", "version")

    def __init__(self, instance_id: bytes, client: ClientAttributes, granted: Granted, version: int) -> None:
        """`version` is the version of the subscriptions that `granted` was made of."""
        self.id = instance_id
        self.client = client
        self.granted = granted
        self.version = version
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self._last_get = self._last_push = -inf

    @property
    def interval_s(self) -> float:
        """The push interval, seconds."""
        return self.granted.interval_ms / 1000

    @property
    def expiry_s(self) -> float:
        """How long the instance is kept without a request, seconds."""
        return max(EXPIRY_S, EXPIRY_INTERVALS * self.interval_s)

    def check_get(self, now: float) -> None:
        """Check a GetTelemetrySubscriptions; KafkaError THROTTLING_QUOTA_EXCEEDED when it comes too early."""
        if now - max(self._last_get, self._last_push) >= self.interval_s:
            self._last_get = now
        elif self.last_error not in _ASKS_AGAIN:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self.last_error = ErrorCode.NONE

    def check_push(self, request: PushTelemetryRequest, size: int, now: float, max_bytes: int) -> None:
        """Check a PushTelemetry in Kafka's order; KafkaError when it is refused, which is the instance's last error.

        `size` is the size of the request's metrics; `max_bytes` the most that are allowed.
        """
        try:
            self._check_push(request, size, now, max_bytes)
        except KafkaError as error:
            self.last_error = error.code
            raise
        finally:
            self.is_terminating = request.terminating

    def _check_push(self, request: PushTelemetryRequest, size: int, now: float, max_bytes: int) -> None:
        if self.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        # The first push after a subscription may come early: clients vary the interval between its half and 1.5.
        is_due = self._last_get > self._last_push or now - self._last_push >= self.interval_s
        if is_due:
            self._last_push = now
        elif not request.terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if request.subscription_id != self.granted.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if request.compression_type not in {0, *SUPPORTED_COMPRESSION_TYPES}:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if size > max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)


def check_instance_id(instance_id: bytes) -> None:
    """KafkaError INVALID_REQUEST for an id that no client has."""
    if instance_id in _RESERVED:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


class ClientInstances:
    """The instances by id, and the connections they came from."""

    def __init__(self, max_instances: int = MAX_INSTANCES) -> None:
        self._max_instances = max_instances
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()
        self._of_connection: dict[Hashable, bytes] = {}
        self._timers = Timers()

    def __len__(self) -> int:
        return len(self._instances)

    def find(self, instance_id: bytes, version: int) -> tuple[ClientInstance | None, bool]:
        """The instance, and whether it was granted what these subscriptions say."""
        instance = self._instances.get(instance_id)
        return instance, instance is not None and instance.version >= version

    def touch(self, instance: ClientInstance, now: float) -> None:
        """Keep an instance for its time from now on."""
        self._instances.move_to_end(instance.id)
        self._timers.set(instance.id, now + instance.expiry_s)

    def put(self, instance: ClientInstance, connection: Hashable, now: float) -> bool:
        """Keep a new instance, or a new state of one; True for the first of a connection."""
        self._instances[instance.id] = instance
        self.touch(instance, now)
        if len(self._instances) > self._max_instances:
            oldest, _ = self._instances.popitem(last=False)
            self._timers.cancel(oldest)
        is_first = connection not in self._of_connection
        self._of_connection[connection] = instance.id
        return is_first

    def disconnected(self, connection: Hashable) -> None:
        """Forget the instance that was made last on a connection."""
        instance_id = self._of_connection.pop(connection, None)
        if instance_id is not None:
            self._forget(instance_id)

    def expire(self, now: float) -> None:
        """Forget the instances whose time is over."""
        while (instance_id := self._timers.pop_due(now)) is not None:
            self._instances.pop(instance_id, None)  # type: ignore[call-overload]

    def next_deadline(self) -> float | None:
        """When the next instance is forgotten, or None."""
        return self._timers.next_deadline()

    def _forget(self, instance_id: bytes) -> None:
        if self._instances.pop(instance_id, None) is not None:
            self._timers.cancel(instance_id)
