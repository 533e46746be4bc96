"""How many connections an address may open a second (connection_creation_rate, KIP-612).

A connection above the rate is accepted and closed without being served, after a delay that the excess requires, a
window at most: so a client that connects again at once is slowed down. It does not count for the rate. Source: Kafka
4.4 `ConnectionQuotas.recordIpConnectionMaybeThrottle`.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import QUOTA_WINDOW_NUM, QUOTA_WINDOW_SIZE_SECONDS
from barnabas.coord.quotas.book import QuotaBook
from barnabas.coord.quotas.keys import CONNECTION_CREATION_RATE, IP, Entity
from barnabas.coord.quotas.rate import Rate
from barnabas.coord.quotas.settings import ANY, ENTITIES_PER_STEP, Name, QuotaSettings

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.disk_threads import DiskExecutor

ConnectionRates = Mapping[str | None, float]
"""Connections a second by address or name of a host; None: of every address without a rate of its own."""


class IpRates:
    """The rates of addresses, and how many connections each has opened."""

    def __init__(self, config: ServerConfig, now: Callable[[], float], threads: DiskExecutor) -> None:
        """`threads` look up the names of hosts; `now` is the monotonic clock, seconds."""
        window_ms = config[QUOTA_WINDOW_SIZE_SECONDS] * 1000
        self._now = now
        self._threads = threads
        self._longest_ms = window_ms
        self._book = QuotaBook(Rate, config[QUOTA_WINDOW_NUM], window_ms)
        self._rates: ConnectionRates = {}

    def follow(self, rates: ConnectionRates) -> None:
        """Apply changed settings; settings with host names when the names have been looked up."""
        self._rates = rates
        self._apply({})
        hosts = [name for name in rates if name is not None and not is_address(name)]
        if not hosts:
            return
        addresses: dict[str, tuple[str, ...]] = {}

        def look_up() -> None:
            addresses.update((host, addresses_of(host)) for host in hosts)

        def looked_up(_: Exception | None) -> None:
            if rates is self._rates:
                self._apply(addresses)

        self._threads.submit(look_up, looked_up)

    def _apply(self, addresses: Mapping[str, tuple[str, ...]]) -> None:
        limits: dict[tuple[Name, Name], float] = {}
        for name, rate in self._rates.items():
            if name is None:
                limits[None, ANY] = rate
            for address in addresses.get(name, (name,)) if name is not None else ():
                limits[None, address] = rate
        self._book.change(QuotaSettings(limits))

    def throttle_s(self, address: str) -> float:
        """Count a connection of an address: in how many seconds it is to be closed, 0 if it is to be served."""
        now_ms = int(self._now() * 1000)
        account = self._book.account("", address, now_ms)
        if account is None:
            return 0.0
        account.use.record(1, now_ms)
        throttle_ms = min(account.use.throttle_ms(account.limit, now_ms), self._longest_ms)
        if throttle_ms:
            account.use.record(-1, now_ms)
        return throttle_ms / 1000


def connection_rates_in_steps(
    quotas: Mapping[Entity, Mapping[str, float]],
) -> Generator[None, None, dict[str | None, float]]:
    """The rates of addresses in the cluster's metadata; yields after a step of a millisecond at most."""
    rates: dict[str | None, float] = {}
    for count, (entity, values) in enumerate(list(quotas.items()), 1):
        names = dict(entity)
        if names.keys() == {IP} and CONNECTION_CREATION_RATE in values:
            rates[names[IP]] = values[CONNECTION_CREATION_RATE]
        if count % ENTITIES_PER_STEP == 0:
            yield
    return rates


def is_address(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def addresses_of(host: str) -> tuple[str, ...]:
    """The addresses of a host, none if the name does not resolve. May wait for a name service, so not for the loop."""
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(info[4][0]) for info in infos))
