"""Barnabas' test kit: `barnabas.testing.Broker`, a virtual cluster for each test.

Virtual clusters have one listener without security. The checks of log-ins and TLS use `barnabas serve` with further
listeners: the same broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import psutil

import barnabas
from barnabas.testing import Broker, Cluster
from bench.servers import BarnabasServer
from bench.testkits import listeners
from bench.testkits.product import KEYS, Place, Product, Setup, Test


class BarnabasKit(Product):
    """The process of `Broker`."""

    name, title = "barnabas", "Barnabas' test kit"
    isolation = "a virtual cluster"

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._broker: Broker | None = None
        self._clusters: dict[str, Cluster] = {}
        self._others = {one.pid for one in _children()}

    @classmethod
    def missing(cls) -> str:
        return ""

    @classmethod
    def version(cls) -> str:
        return barnabas.__version__

    @classmethod
    def prepare(cls) -> None:
        pass

    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:
        if setup in (Setup.LOG_IN, Setup.TLS):
            return listeners.start(self._stack, BarnabasServer, setup, keys)
        self._broker = Broker({**KEYS[setup], **(keys or {})})
        return Place(self._stack.enter_context(self._broker).bootstrap_servers)

    def begin(self) -> Test:
        assert self._broker is not None, "not started"
        cluster = self._broker.open()
        self._clusters[cluster.bootstrap_servers] = cluster
        return Test(Place(cluster.bootstrap_servers), "orders", "group")

    def end(self, test: Test) -> None:
        self._clusters.pop(test.place.bootstrap).close()

    def processes(self) -> list[psutil.Process]:
        return [one for one in _children() if one.pid not in self._others]

    def stop(self) -> None:
        self._stack.close()


def _children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)
