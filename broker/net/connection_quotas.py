"""How many connections there may be, and how many new ones a second: of the broker, of a listener, of an address.

As in Kafka, a listener whose limit is reached accepts nothing until a connection is closed or the rate allows one: its
clients wait in the system's queue. Only a connection above the limit of its address is closed. The inter-broker
listener is exempt from the limits of the whole broker, if there are others: the connection of another listener that
was idle for the longest time is closed instead. Source: Kafka's `ConnectionQuotas`; KIP-402, KIP-612.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

from barnabas.broker.net.limits import UNLIMITED, ListenerLimits

if TYPE_CHECKING:
    from barnabas.broker.net.limits import Limits


class _Rate:
    """Limits events per second with a bucket that holds the events of a window (Kafka measures over a window too)."""

    __slots__ = ("_at", "_available", "_capacity", "_limit")

    def __init__(self) -> None:
        self._limit: float = UNLIMITED
        self._capacity = inf
        self._available = inf
        self._at = 0.0

    @property
    def is_limited(self) -> bool:
        """Whether an event may have to wait."""
        return self._limit != UNLIMITED

    def set_limit(self, limit: int, window_s: float, now: float) -> None:
        """Allow `limit` events per second, and those of `window_s` seconds at once."""
        if limit == self._limit:
            return
        self._limit = limit
        self._capacity = inf if limit == UNLIMITED else limit * max(window_s, 1.0)
        self._available = self._capacity
        self._at = now

    def wait_s(self, now: float) -> float:
        """How long the next event must wait, seconds."""
        if self._limit == UNLIMITED:
            return 0.0
        self._available = min(self._capacity, self._available + (now - self._at) * self._limit)
        self._at = now
        if self._available >= 1:
            return 0.0
        return (1 - self._available) / self._limit if self._limit else inf

    def count(self) -> None:
        """There was an event."""
        self._available -= 1


class ConnectionQuotas:
    """Counts connections and checks them against the limits."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.of_listener: Counter[str] = Counter()
        """The number of open connections by listener."""
        self._of_ip: Counter[str] = Counter()
        self._total = 0
        self._rate = _Rate()
        self._rates: dict[str, _Rate] = {}
        self.set_limits(limits, now)

    def set_limits(self, limits: Limits, now: float) -> None:
        """Replace the limits; connections that are open stay open."""
        self._limits = limits
        self._rate.set_limit(limits.creation_rate, limits.rate_window_s, now)
        for name, own in limits.listeners.items():
            rate = self._rates.setdefault(name, _Rate())
            rate.set_limit(own.creation_rate, limits.rate_window_s, now)
        self._may_hold = (
            limits.max_connections != UNLIMITED
            or self._rate.is_limited
            or any(rate.is_limited for rate in self._rates.values())
            or any(own.max_connections != UNLIMITED for own in limits.listeners.values())
        )

    def hold(self, listener: str, now: float) -> tuple[float, str] | None:
        """Why `listener` must not accept a connection now: for how many seconds, and the limit; None if it may.

        Infinity: until a connection is closed or a limit is changed.
        """
        if not self._may_hold:
            return None
        limits = self._limits
        own = self._own(listener)
        if self.of_listener[listener] >= own.max_connections:
            return inf, f"max.connections={own.max_connections} of the listener"
        is_exempt = listener == limits.inter_broker_listener
        if self._total >= limits.max_connections and not is_exempt:
            return inf, f"max.connections={limits.max_connections}"
        rate = self._rates.get(listener)
        wait_s = rate.wait_s(now) if rate is not None else 0.0
        if wait_s:
            return wait_s, f"max.connection.creation.rate={own.creation_rate} of the listener"
        wait_s = 0.0 if is_exempt else self._rate.wait_s(now)
        if wait_s:
            return wait_s, f"max.connection.creation.rate={limits.creation_rate}"
        return None

    def accepted(self, listener: str) -> None:
        """A connection was accepted, which counts for the rates also if it is closed at once."""
        if not self._may_hold:
            return
        rate = self._rates.get(listener)
        if rate is not None:
            rate.count()
        if listener != self._limits.inter_broker_listener:
            self._rate.count()

    def limit_of(self, host: str) -> int:
        """How many connections an address may have."""
        return self._limits.max_connections_of_ip.get(host, self._limits.max_connections_per_ip)

    def allows(self, host: str) -> bool:
        """Whether an address may have one more connection."""
        return self._of_ip[host] < self.limit_of(host)

    def opened(self, listener: str, host: str) -> bool:
        """Count a connection; True if another listener's must be closed, since the broker now has too many."""
        self._total += 1
        self.of_listener[listener] += 1
        self._of_ip[host] += 1
        return self._total > self._limits.max_connections

    def closed(self, listener: str, host: str) -> None:
        """Stop counting a connection."""
        self._total -= 1
        self.of_listener[listener] -= 1
        self._of_ip[host] -= 1
        if not self._of_ip[host]:
            del self._of_ip[host]

    def _own(self, listener: str) -> ListenerLimits:
        return self._limits.listeners.get(listener, _NO_LIMITS)


_NO_LIMITS = ListenerLimits()
