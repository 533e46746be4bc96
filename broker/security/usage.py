"""The use of its client's quotas by one request; only requests of a broker with quotas have a `Usage`.

The time of the thread counts while the request is handled and while its response is made. Work done for it while it
waits is not counted: that is done for several requests at once. Source: Kafka 4.4 `RequestHandlerHelper`, `KafkaApis`.
KIP-124, KIP-219.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.security.client_quotas import ClientQuotas


class Usage:
    """The use of one request."""

    __slots__ = (
        "_client_id",
        "_is_recorded",
        "_quotas",
        "_since",
        "_spent_s",
        "_throttle_ms",
        "_user",
        "is_exempt",
        "size",
    )

    def __init__(self, quotas: ClientQuotas, user: str, client_id: str | None, size: int, since: float) -> None:
        """`size` is the request's size, bytes; `since` is when its handling began, by the CPU clock of the quotas."""
        self._quotas = quotas
        self._user = user
        self._client_id = client_id or ""
        self.size = size
        self.is_exempt = False
        """Whether the request is not counted: the fetch of a follower."""
        self._since: float | None = since
        self._spent_s = 0.0
        self._is_recorded = False
        self._throttle_ms = 0

    def pause(self) -> None:
        """The request waits: the thread serves others."""
        if self._since is not None:
            self._spent_s += self._quotas.cpu_time() - self._since
            self._since = None

    def resume(self) -> None:
        """The response is made now."""
        if self._since is None:
            self._since = self._quotas.cpu_time()

    def request_throttle_ms(self) -> int:
        """Record the time so far, once; how long the client has to wait because of it."""
        if not self._is_recorded:
            self._is_recorded = True
            self._throttle_ms = self._quotas.served(self._user, self._client_id, self._take_spent())
        return self._throttle_ms

    def finish(self) -> None:
        """The response is made: the time since counts for the next request."""
        if self._is_recorded:
            self._quotas.served(self._user, self._client_id, self._take_spent(), may_throttle=False)

    def produce_throttle_ms(self) -> int:
        """Record the bytes of the request; how long the client has to wait because of them."""
        return self._quotas.produced(self._user, self._client_id, self.size)

    def fetch_throttle_ms(self, size: int) -> int:
        """Record the bytes of a response; how long the client has to wait. If it has to, it gets no records.

        The same if only its requests take too much time, as in Kafka.
        """
        throttle_ms = max(self.request_throttle_ms(), self._quotas.fetched(self._user, self._client_id, size))
        if throttle_ms:
            self._quotas.not_fetched(self._user, self._client_id, size)
        return throttle_ms

    def share_fetch_throttle_ms(self, size: int) -> int:
        """Record the bytes of a response that is sent in any case; how long the client has to wait after it."""
        return self._quotas.fetched(self._user, self._client_id, size)

    def most_fetched(self) -> float:
        """The most bytes that the client may get at once."""
        return self._quotas.most_fetched(self._user, self._client_id)

    def _take_spent(self) -> float:
        now = self._quotas.cpu_time()
        spent = self._spent_s
        self._spent_s = 0.0
        if self._since is not None:
            spent += now - self._since
            self._since = now
        return spent
