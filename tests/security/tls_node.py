"""A node with a TLS listener whose files change while it serves."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.config.load import load
from barnabas.broker.event_loop.disk_threads import DiskExecutor
from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.security import tls as tls_module
from barnabas.broker.security.tls import Tls
from tests.support.security.certificates import Authority

CA = Authority()


SERVER = CA.sign("server")


VALID_MS = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)


def shakes_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost") -> ssl.SSLObject:
    """The client's side after a handshake. ssl.SSLError if it fails."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    accepting = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (asking, accepting) * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            pass
    assert asking.version() is not None
    return asking


class InPlace:
    """Runs what would run in a thread."""

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        failure = None
        try:
            work()
        except Exception as error:
            failure = error
        then(failure)


class TlsNode:
    """A node with files, and the time in the hands of the test."""

    def __init__(
        self, path: Path, executor: DiskExecutor | None = None, *, at_ms: int = VALID_MS, **others: str
    ) -> None:
        self.key_store, self.trust_store = path / "own.pem", path / "trust.pem"
        SERVER.write(self.key_store)
        CA.write(self.trust_store)
        keys = {
            "listeners": "SSL://localhost:9093",
            "security.inter.broker.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust_store),
        }
        self.config = load(keys | {name.replace("_", "."): value for name, value in others.items()}, {}, None)
        self.now = 0.0
        self.loop = Loop(lambda: self.now, lambda: at_ms)
        self.tls = Tls(self.config)
        self.tls.follow(self.loop, executor or InPlace())

    def change_key_store(self, path: str) -> None:
        """Another key store by a dynamic config."""
        name = "listener.name.ssl.ssl.keystore.location"
        self.tls.configs_changed(self.config.set_dynamic({name: path}, {}))

    @property
    def shown(self) -> bytes | None:
        """The certificate that a new connection is shown."""
        identity = self.tls.identities["SSL"]
        return shakes_hands(identity.context, identity.client_context).getpeercert(binary_form=True)

    def wait(self) -> None:
        """Let the time pass until the files are looked at."""
        self.now += tls_module.CHECK_S
        self.loop.timers.fire(self.now)
