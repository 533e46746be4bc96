"""The brokers of a test run: Barnabas, a cluster of it, or Apache Kafka, with or without secured listeners.

A broker may be killed, or its certificate replaced, while tests run: `killer.py` and `rotator.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.kafka import KafkaServer
from tests.support.processes.killer import SETTINGS as KILLED_SETTINGS
from tests.support.processes.killer import Killer
from tests.support.processes.rotator import Rotator
from tests.support.processes.security import Combination
from tests.support.processes.served_cluster import BarnabasCluster
from tests.support.processes.server import BarnabasServer, Server

if TYPE_CHECKING:
    from tests.support.processes.secured_broker import SecuredBroker


LIVE: dict[str, Server] = {}
"""The brokers that run, by what a report calls them."""


StartBroker = Callable[..., Server]


def killer_of(config: pytest.Config) -> Killer | None:
    """The plugin that kills brokers during this run (`compat/run NAME --brokers 3 --kill-every 20`), or None."""
    return next((plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, Killer)), None)


def rotator_of(config: pytest.Config) -> Rotator | None:
    """The plugin that replaces certificates during this run (`compat/run NAME --secure SSL --rotate 2`), or None."""
    return next((plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, Rotator)), None)


class BrokersOfRun:
    """Starts the brokers of this run, all of one kind: single ones, or clusters whose brokers may be killed."""

    def __init__(self, config: pytest.Config) -> None:
        self.kind = str(config.getoption("--against"))
        self._count = int(config.getoption("--brokers"))
        self._controllers = str(config.getoption("--controllers"))
        self._killer = killer_of(config)
        self._rotator = rotator_of(config)
        self._secure: Combination | None = config.getoption("--secure")
        self._secured: dict[Server, SecuredBroker] = {}
        if self._secure is not None and self._count > 1:
            raise pytest.UsageError("--secure is for one broker")

    def start(self, data_dir: Path, keys: Mapping[str, str]) -> Server:
        """A started broker, or cluster."""
        server: Server
        if self._secure is not None:
            return self._start_secured(self._secure, data_dir, keys)
        if self.kind == "kafka":
            server = KafkaServer(data_dir, config=dict(keys))
        elif self._count > 1:
            own = {**KILLED_SETTINGS, **keys} if self._killer is not None else dict(keys)
            options = ("--controllers", self._controllers)
            server = BarnabasCluster(data_dir, brokers=self._count, config=own, options=options)
        else:
            server = BarnabasServer(data_dir, config=dict(keys))
        LIVE[self._name(data_dir)] = server
        server.start()
        if self._killer is not None and isinstance(server, BarnabasCluster):
            self._killer.take(server)
        return server

    def _start_secured(self, secure: Combination, data_dir: Path, keys: Mapping[str, str]) -> Server:
        from tests.support.processes.secured_broker import SecuredBroker

        secured = SecuredBroker(self.kind, data_dir, keys, secure)
        LIVE[self._name(data_dir)] = secured.server
        secured.start()
        if self._rotator is not None and secure.has_tls:
            self._rotator.take(secured)
            self._secured[secured.server] = secured
        return secured.server

    def stop(self, server: Server) -> None:
        """Stop it. AssertionError if one of its brokers was killed and has not come back."""
        try:
            if self._rotator is not None and server in self._secured:
                self._rotator.leave(self._secured.pop(server))
            if self._killer is not None and isinstance(server, BarnabasCluster):
                self._killer.leave(server)
        finally:
            server.stop()
            LIVE.pop(self._name(server.data_dir), None)

    def _name(self, data_dir: Path) -> str:
        return f"{self.kind} in {data_dir}"
