"""The brokers whose costs are counted, and what the kinds of requests need of them."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.costs.broker import ROOT, CountedBroker
from tests.costs.client import Client, Stream, TlsStream
from tests.costs.kinds.fetching import wait_for_ever
from tests.support.processes.ports import free_port

HOST = "127.0.0.1"
PLAIN = "plain"
TLS = "TLS"
AUTHORIZER = "authorizer"
REPLICATED = "replicated"
METRICS = "metrics"
_ALL = {"barnabas.log.sync": "os", "log.retention.ms": "-1", "num.partitions": "1"}
"""As in the benchmark's main group, nothing is synced before it is acknowledged; kinds that sync set it for their
topic. Records have an old timestamp, and are kept."""
_SETS: dict[str, dict[str, str]] = {
    PLAIN: {},
    TLS: {"ssl.keystore.type": "PEM"},
    AUTHORIZER: {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    },
    REPLICATED: {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "broker.session.timeout.ms": "3600000",
        "replica.lag.time.max.ms": "3600000",
        "offsets.topic.replication.factor": "1",
    },
    METRICS: {"barnabas.metrics.listener": f"{HOST}:0"},
}
WORLDS = tuple(_SETS)


class CountedWorld:
    """A broker, and the connections to it of one kind of request."""

    def __init__(self, broker: CountedBroker, ports: dict[str, int], tls: ssl.SSLContext | None) -> None:
        self.broker = broker
        self._ports = ports
        self._tls = tls
        self._clients: list[Client] = []

    def client(self, listener: str = "PLAINTEXT") -> Client:
        """A new connection to a listener."""
        address = (HOST, self._ports[listener])
        if listener == "SSL":
            assert self._tls is not None
            stream: Stream = TlsStream(address, self._tls)
        else:
            stream = Stream(address)
        client = Client(stream)
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.close()
        self._clients.clear()


@contextmanager
def running(name: str, checkout: Path = ROOT) -> Iterator[CountedWorld]:
    """Run the broker of a world, with the code of a checkout."""
    with tempfile.TemporaryDirectory(prefix="costs-") as directory:
        folder = Path(directory)
        listeners = ["PLAINTEXT"]
        sets = _ALL | _SETS[name]
        tls = None
        if name == TLS:
            listeners.append("SSL")
            store, tls = _certificates(folder)
            sets["ssl.keystore.location"] = str(store)
        if name == REPLICATED:
            listeners.append("CONTROLLER")
        ports = {listener: free_port() for listener in listeners}
        sets["listeners"] = ",".join(f"{listener}://{HOST}:{port}" for listener, port in ports.items())
        if name == REPLICATED:
            sets["controller.quorum.voters"] = f"1@{HOST}:{ports['CONTROLLER']}"
        with CountedBroker(folder, sets, checkout) as broker:
            waiting = Client(Stream((HOST, ports["PLAINTEXT"])))
            wait_for_ever(waiting)
            world = CountedWorld(broker, ports, tls)
            try:
                yield world
            finally:
                world.close_clients()
                waiting.close()


def _certificates(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The broker's key and certificate in a file, and what clients trust."""
    from barnabas.tools.secure.authority import Authority

    authority = Authority.new("costs")
    store = folder / "broker.pem"
    store.write_text(authority.broker("costs", [HOST]))
    return store, ssl.create_default_context(cadata=authority.pem)
