"""Barnabas' test kit: `barnabas.testing.Broker`, a virtual cluster for each test.

A virtual cluster has one listener, which is called PLAINTEXT; its config keys say what protocol that has.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import psutil

import barnabas
from barnabas.testing import Broker, Cluster
from bench import secured
from bench.testkits import listeners
from bench.testkits.product import KEYS, Place, Product, Setup, Test

LOG_IN = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": secured.SETTINGS["sasl.enabled.mechanisms"],
    **{key.replace(".sasl_plaintext.", ".plaintext."): value for key, value in secured.LOG_IN.items()},
}
"""Keys of a cluster where clients log in."""


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
        self._broker = Broker(keys)
        own = self._stack.enter_context(self._broker)
        if setup is Setup.LOG_IN:
            return listeners.log_in_place(self._broker.open(LOG_IN).bootstrap_servers)
        if setup is Setup.TLS:
            key_store, ca = listeners.certificate(self._stack)
            stores = {"ssl.keystore.location": str(key_store), "ssl.truststore.location": str(ca)}
            kinds = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
            cluster = self._broker.open({"listener.security.protocol.map": "PLAINTEXT:SSL", **kinds, **stores})
            return listeners.tls_place(cluster.bootstrap_servers, ca)
        return Place(self._broker.open(KEYS[setup]).bootstrap_servers if KEYS[setup] else own.bootstrap_servers)

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
