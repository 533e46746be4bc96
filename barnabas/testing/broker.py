"""A broker in a test: `with Broker() as broker:`, and `async with` in asyncio, trio and anyio.

`BARNABAS_CONTROL` (http://TOKEN@HOST:PORT) names a broker that runs already; it is used instead of a new process.
One that only `BARNABAS_TEST_BOOTSTRAP_SERVERS` names has no control channel: clients can use it, the kit cannot. It is
not `BARNABAS_BOOTSTRAP_SERVERS`, which is for the command line: tests must not write to that cluster by accident.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from barnabas.testing.access import Access
from barnabas.testing.channel import Channel
from barnabas.testing.cluster import AsyncCluster, Cluster
from barnabas.testing.errors import BrokerError, RefusedError
from barnabas.testing.forms import in_thread
from barnabas.testing.link import TIMEOUT_S, Link
from barnabas.testing.process import BrokerProcess

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

CONTROL = "BARNABAS_CONTROL"
BOOTSTRAP = "BARNABAS_TEST_BOOTSTRAP_SERVERS"
LOOPBACK = "127.0.0.1"


def running_broker() -> str | None:
    """The address of a broker that runs already and has no control channel, None if there is none."""
    return None if os.environ.get(CONTROL) else os.environ.get(BOOTSTRAP) or None


class Broker:
    """A broker's process with its control channel. Entering it starts it, leaving it ends it.

    `with` gives a `Cluster`, `async with` an `AsyncCluster`: the broker itself, or with `brokers` a cluster of so many
    in its process. `open` makes further clusters, each as isolated as a process of its own.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        host: str = LOOPBACK,
        timeout: float = TIMEOUT_S,
        brokers: int | None = None,
    ) -> None:
        """`config` are Kafka's broker keys; `timeout` is how long assertions wait, seconds.

        `host` is the address of all listeners; responses name the address that a client has dialled. `port` is for one
        broker: several have free ones. ValueError for both.
        """
        if port and brokers is not None:
            raise ValueError("port is for one broker: several take free ports")
        self._brokers = brokers
        self._opened: Link | None = None
        self._config = {key: str(value) for key, value in (config or {}).items()}
        self._host = host
        self._port = port
        self._timeout = timeout
        self._process: BrokerProcess | None = None
        self._channel: Channel | None = None
        self._access = Access("")

    def start(self) -> Cluster:
        """Start it; its cluster. BrokerError if it does not start."""
        return Cluster(*self._started())

    def stop(self) -> None:
        """End it; a broker that ran before goes on, without the cluster that this object's `brokers` opened."""
        if self._opened is not None and self._process is None:
            with suppress(RefusedError, BrokerError):  # the test has closed it, or the broker has ended
                self.channel.call("DELETE", f"/v1/clusters/{self._opened.number}")
        self._opened = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.stop()
            self._process = None

    @property
    def channel(self) -> Channel:
        """The control channel of a broker that was started. BrokerError if it was not."""
        if self._channel is None:
            raise BrokerError("The broker does not run: use it in `with Broker() as kafka`, or call start()")
        return self._channel

    def use(self, url: str, token: str) -> None:
        """Use a broker that is running already, by its control channel, instead of starting one."""
        channel = Channel(url, token)
        try:
            self._access = Access(channel.call("GET", "/v1/clusters")["clusters"][0]["bootstrap"])
        except BaseException:
            channel.close()
            raise
        self._channel = channel

    def open(self, config: Mapping[str, object] | None = None, **more: object) -> Cluster:
        """A further cluster in the same process, with config keys of its own.

        `more`: the other options of a cluster: seed, brokers, as_version, auth, tls. RefusedError if it cannot start
        with them.
        """
        return Cluster(*self._open(config, more))

    async def open_async(self, config: Mapping[str, object] | None = None, **more: object) -> AsyncCluster:
        """The same, to await."""
        return AsyncCluster(*await in_thread(self._open, config, more))

    def _open(self, config: Mapping[str, object] | None, more: Mapping[str, object]) -> tuple[Link, Access]:
        keys = dict(self._config) if self._process is None and os.environ.get(CONTROL) else {}
        keys |= {key: str(value) for key, value in (config or {}).items()}
        opened: dict[str, Any] = self.channel.call("POST", "/v1/clusters", {"config": keys, **more})
        access = Access(opened["bootstrap"], opened.get("security"))
        return Link(self.channel, opened["id"], self._timeout), access

    def _started(self) -> tuple[Link, Access]:
        self._start()
        if self._brokers is None:
            return Link(self.channel, 0, self._timeout), self._access
        try:
            self._opened, access = self._open(self._config, {"brokers": self._brokers})
        except BaseException:
            self.stop()
            raise
        return self._opened, access

    def _start(self) -> None:
        if self._channel is not None:
            raise BrokerError("The broker runs already; open() gives further clusters")
        running = os.environ.get(CONTROL)
        if running:
            self._use_running(running)
            return
        if (bootstrap := running_broker()) is not None:
            raise BrokerError(
                f"{BOOTSTRAP} names the broker {bootstrap}, which clients can use; a cluster for each test, assertions "
                f"and faults need its control channel: set {CONTROL}=http://TOKEN@HOST:PORT (barnabas serve --control)"
            )
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._process = BrokerProcess(self._config, listen=f"{host}:{self._port}")
        control = self._process.control
        self._channel = Channel(control["control"], control["token"])
        self._channel.why = self._process.why_ended
        self._access = Access(control["bootstrap"])

    def _use_running(self, control: str) -> None:
        token, _, address = control.removeprefix("http://").rpartition("@")
        if not (token and address):
            raise BrokerError(f"{CONTROL} must be http://TOKEN@HOST:PORT")
        if self._port:
            raise BrokerError(f"{CONTROL} names a broker that runs already, so none is started on port {self._port}")
        self.use(f"http://{address}", token)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        return AsyncCluster(*await in_thread(self._started))

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self.stop)
