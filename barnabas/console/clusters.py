"""Clients of brokers that requests borrow: a `Cluster` serves one thread at a time.

A pool for each user, since a connection is logged in as one. Clients that are not borrowed are closed after
`IDLE_S`, and one that failed is closed at once. Threads are bounded by whoever calls (`serving.py`, `events.py`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError

if TYPE_CHECKING:
    from barnabas.client.security.settings import Security
    from barnabas.console.settings import Settings

IDLE_S = 60.0
IDLE_MAX = 4
"""How many unused clients are kept for one user."""


class Clusters:
    """The clients of the brokers, by user."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: dict[str, deque[tuple[Cluster, float]]] = defaultdict(deque)
        self._lock = Lock()

    @contextmanager
    def borrow(self, user: str, security: Security | None, timeout_s: float | None = None) -> Iterator[Cluster]:
        """A client that is logged in with `security` as `user`, for the time of the block. Does not connect yet."""
        cluster = self._take(user) or self.new(security)
        cluster.timeout_s = timeout_s or self._settings.timeout_s
        try:
            yield cluster
        except ClientError:
            cluster.close()
            raise
        except BaseException:
            self._give_back(user, cluster)
            raise
        self._give_back(user, cluster)

    def new(self, security: Security | None) -> Cluster:
        """A client of the caller's own, who closes it: for background threads and log-ins."""
        settings = self._settings
        return Cluster(
            settings.bootstrap,
            client_id="barnabas-console",
            software_version=__version__,
            timeout_s=settings.timeout_s,
            security=security,
        )

    def forget(self, user: str) -> None:
        """Close the unused clients of a user, at log-out."""
        with self._lock:
            clients = self._idle.pop(user, deque())
        for cluster, _ in clients:
            cluster.close()

    def close(self) -> None:
        """Close every unused client."""
        for user in list(self._idle):
            self.forget(user)

    def _take(self, user: str) -> Cluster | None:
        self._close_old()
        with self._lock:
            clients = self._idle.get(user)
            return clients.pop()[0] if clients else None

    def _give_back(self, user: str, cluster: Cluster) -> None:
        with self._lock:
            clients = self._idle[user]
            if len(clients) < IDLE_MAX:
                clients.append((cluster, monotonic()))
                return
        cluster.close()

    def _close_old(self) -> None:
        limit = monotonic() - IDLE_S
        old: list[Cluster] = []
        with self._lock:
            for user, clients in list(self._idle.items()):
                while clients and clients[0][1] < limit:
                    old.append(clients.popleft()[0])
                if not clients:
                    del self._idle[user]
        for cluster in old:
            cluster.close()
