"""The quotas of this broker's clients: the use of each, and how long it has to wait.

A broker has them only while there are settings for users or client ids, so without any a request costs one test of an
attribute. Each broker limits only the use of itself by its clients, as in Kafka; changes of the metadata are limited by
the controller. Source: Kafka 4.4 `QuotaFactory`, `ClientRequestQuotaManager`. KIP-13, KIP-124, KIP-599.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import (
    CONTROLLER_QUOTA_WINDOW_NUM,
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS,
    QUOTA_WINDOW_NUM,
    QUOTA_WINDOW_SIZE_SECONDS,
)
from barnabas.coord.quotas.book import QuotaBook
from barnabas.coord.quotas.keys import Entity, QuotaType
from barnabas.coord.quotas.rate import Rate
from barnabas.coord.quotas.settings import settings_in_steps
from barnabas.coord.quotas.token_bucket import TokenBucket

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig

PERCENT: Final = 100.0
"""The percentage of one thread that is always busy: this broker has one thread for requests."""


class ClientQuotas:
    """The accounts of all types of quotas."""

    def __init__(
        self, config: ServerConfig, now: Callable[[], float], cpu_time: Callable[[], float] = time.thread_time
    ) -> None:
        """`now` is the monotonic clock, `cpu_time` the CPU time of this thread, both in seconds."""
        windows, window_s = config[QUOTA_WINDOW_NUM], config[QUOTA_WINDOW_SIZE_SECONDS]
        self._now = now
        self.cpu_time = cpu_time
        self._window_ms = window_s * 1000
        self._burst_s = (windows - 1) * window_s
        self.produce = QuotaBook(Rate, windows, self._window_ms)
        self.fetch = QuotaBook(Rate, windows, self._window_ms)
        self.request = QuotaBook(Rate, windows, self._window_ms)
        self.mutation = QuotaBook(
            TokenBucket, config[CONTROLLER_QUOTA_WINDOW_NUM], config[CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS] * 1000
        )

    def apply(self, quotas: Mapping[Entity, Mapping[str, float]]) -> Generator[None, None, bool]:
        """Take over the settings of the metadata, in steps; whether there are any for clients."""
        settings = yield from settings_in_steps(quotas)
        self.produce.change(settings[QuotaType.PRODUCE])
        self.fetch.change(settings[QuotaType.FETCH])
        self.request.change(settings[QuotaType.REQUEST])
        self.mutation.change(settings[QuotaType.CONTROLLER_MUTATION])
        return any(settings.values())

    @property
    def now_ms(self) -> int:
        """The monotonic clock, milliseconds."""
        return int(self._now() * 1000)

    def produced(self, user: str, client_id: str, size: int) -> int:
        """Count `size` bytes that a client has sent to be stored; how long it has to wait, ms."""
        return self._used(self.produce, user, client_id, size)

    def fetched(self, user: str, client_id: str, size: int) -> int:
        """Count `size` bytes that a client is to get; how long it has to wait, ms."""
        return self._used(self.fetch, user, client_id, size)

    def not_fetched(self, user: str, client_id: str, size: int) -> None:
        """Take back `size` bytes: the client did not get them."""
        now_ms = self.now_ms
        account = self.fetch.account(user, client_id, now_ms)
        if account is not None:
            account.use.record(-size, now_ms)

    def most_fetched(self, user: str, client_id: str) -> float:
        """The most bytes that a client may get at once: more would always be too much, however long it has waited."""
        account = self.fetch.account(user, client_id, self.now_ms)
        return float("inf") if account is None else account.limit * self._burst_s

    def served(self, user: str, client_id: str, cpu_s: float, *, may_throttle: bool = True) -> int:
        """Count `cpu_s` of the thread's time for a request; how long its client has to wait, ms: a window at most."""
        now_ms = self.now_ms
        account = self.request.account(user, client_id, now_ms)
        if account is None:
            return 0
        account.use.record(cpu_s * PERCENT, now_ms)
        return min(account.use.throttle_ms(account.limit, now_ms), self._window_ms) if may_throttle else 0

    def _used(self, book: QuotaBook[Rate], user: str, client_id: str, value: float) -> int:
        now_ms = self.now_ms
        account = book.account(user, client_id, now_ms)
        if account is None:
            return 0
        account.use.record(value, now_ms)
        return account.use.throttle_ms(account.limit, now_ms)
