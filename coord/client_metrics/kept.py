"""The metrics that clients have pushed: the latest value of each series of each client instance, within a bound.

A series is a metric with its attributes, in the names of Prometheus. Counts with delta temporality, which have the
increase since the last push, are summed up here. A client's series are kept for as long as its instance would be,
counted from its last push, also when the client has ended or uses another broker: then the last values can still be
read. When the bound is reached, the series of the client that pushed least recently are dropped; if one client alone
exceeds the bound, its excess series are dropped.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.coord.client_metrics.matching import (
    CLIENT_ID,
    CLIENT_INSTANCE_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
)
from barnabas.coord.timers import Timers

if TYPE_CHECKING:
    from barnabas.coord.client_metrics.matching import ClientAttributes
    from barnabas.wire.clients.otlp import Point

SERIES_BYTES: Final = 300
"""The memory that a series takes beside its labels, and a metric or a client beside its name; rounded up."""
MAX_SERIES: Final = 20_000
MAX_METRICS: Final = 2_000
"""Most series of one client, and most metrics that they are of: so many are forgotten within 2 ms."""
MAX_LABEL: Final = 1024
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
MIXED: Final = "untyped"
"""The type of a metric that clients push with different types."""

_IDENTITY = (CLIENT_INSTANCE_ID, CLIENT_ID, CLIENT_SOFTWARE_NAME, CLIENT_SOFTWARE_VERSION)
_INVALID = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(slots=True, eq=False)
class Family:
    """One metric: its type, and the values by client and labels."""

    kind: str
    of: dict[KeptClient, dict[str, float]] = field(default_factory=dict)


class KeptClient:
    """A client with its labels and the names of its metrics."""

    __slots__ = ("bytes", "is_forgotten", "labels", "metrics", "series")

    def __init__(self, client: ClientAttributes) -> None:
        self.labels = labels([(name, client[name] or "") for name in _IDENTITY])
        self.metrics: set[str] = set()
        self.bytes = SERIES_BYTES + len(self.labels)
        self.series = 0
        self.is_forgotten = False


class KeptMetrics:
    """The series of all clients."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._clients: OrderedDict[bytes, KeptClient] = OrderedDict()
        self._timers = Timers()
        self.families: dict[str, Family] = {}
        self.bytes = 0
        """The memory that is in use, about."""
        self.pushes = 0
        """Pushes since the start."""
        self.dropped = 0
        """Values that did not fit, since the start."""

    @property
    def client_count(self) -> int:
        """The number of clients with metrics."""
        return len(self._clients)

    def begin(self, instance_id: bytes, client: ClientAttributes, expires_at: float) -> KeptClient:
        """A push of a client begins; its series are kept until `expires_at` (monotonic seconds)."""
        known = self._clients.get(instance_id)
        if known is None:
            known = self._clients[instance_id] = KeptClient(client)
            self.bytes += known.bytes
        self._clients.move_to_end(instance_id)
        self._timers.set(instance_id, expires_at)
        self.pushes += 1
        return known

    def add(self, client: KeptClient, point: Point) -> None:
        """Keep a value of a push that has begun."""
        if client.is_forgotten:  # to make room for a client that has pushed meanwhile
            self.dropped += 1
            return
        name = metric_name(point.name)
        kind = COUNTER if point.is_monotonic else GAUGE
        series_labels = labels([(key, value) for key, value in point.attributes if key not in _IDENTITY])
        family = self.families.get(name)
        if family is not None and family.kind != kind:
            family.kind = MIXED
        values = None if family is None else family.of.get(client)
        if values is not None and series_labels in values:
            values[series_labels] = values[series_labels] + point.value if point.is_delta else point.value
            return
        size = SERIES_BYTES + len(series_labels) + (0 if values is not None else SERIES_BYTES + len(name))
        is_full = client.series >= MAX_SERIES or (values is None and len(client.metrics) >= MAX_METRICS)
        if is_full or not self._make_room(size, client):
            self.dropped += 1
            return
        if family is None or name not in self.families:  # it may have been forgotten to make room
            family = self.families[name] = Family(kind)
        family.of.setdefault(client, {})[series_labels] = point.value
        client.metrics.add(name)
        client.series += 1
        client.bytes += size
        self.bytes += size

    def expire(self, now: float) -> None:
        """Forget one of the clients whose time is over: others are served before the next one."""
        instance_id = self._timers.pop_due(now)
        if instance_id is not None:
            self._forget(instance_id)  # type: ignore[arg-type]

    def next_deadline(self) -> float | None:
        """When the next client is forgotten, or None."""
        return self._timers.next_deadline()

    def _make_room(self, size: int, client: KeptClient) -> bool:
        """Forget other clients until `size` bytes are left; False if `client` has all that there is."""
        while self.bytes + size > self._max_bytes:
            oldest = next(iter(self._clients))
            if self._clients[oldest] is client:
                return False
            self._forget(oldest)
        return True

    def _forget(self, instance_id: bytes) -> None:
        client = self._clients.pop(instance_id)
        self._timers.cancel(instance_id)
        client.is_forgotten = True
        self.bytes -= client.bytes
        for name in client.metrics:
            family = self.families[name]
            del family.of[client]
            if not family.of:
                del self.families[name]


def metric_name(name: str) -> str:
    """The name in Prometheus' form: dots become underscores."""
    changed = _INVALID.sub("_", name)
    return changed if changed and not changed[0].isdigit() else f"_{changed}"


def labels(pairs: list[tuple[str, str]]) -> str:
    """Labels in Prometheus' text format; of equal names the last one counts."""
    distinct = {metric_name(name): value[:MAX_LABEL].translate(_ESCAPES) for name, value in pairs}
    return ",".join(f'{name}="{value}"' for name, value in distinct.items())
