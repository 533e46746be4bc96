"""A broker that is started without `--control` has no port, no module and no seam of the kit, whatever it is asked."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
import trio
from confluent_kafka import Consumer, Producer

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.config.load import load
from barnabas.broker.event_loop.disk_threads import DiskThreads
from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.server import Server
from barnabas.broker.world import wall_clock_ms
from barnabas.cli.serve.run import serve_options
from barnabas.storage.files import Files

OF_THE_KIT = ("barnabas.kit", "barnabas.testing", "h11", "http.server")


PROGRAM = """
import sys
from barnabas.cli import main
try:
    main(["serve", "--listen", "127.0.0.1:0"])
finally:
    print("modules:", *sys.modules)
"""


class Plain:
    """The process of a broker that says at its end which modules it has imported."""

    def __init__(self) -> None:
        environment = os.environ | {"BARNABAS_CONTROL": "http://token@127.0.0.1:1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        assert self._process.stdout is not None
        self.ready_line = self._process.stdout.readline()

    def listening(self) -> list[int]:
        """The ports on which it listens."""
        connections = psutil.Process(self._process.pid).net_connections("all")
        return [connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN]

    def stop(self) -> set[str]:
        """End it; what it had imported."""
        self._process.terminate()
        output, _ = self._process.communicate()
        return set(output.rpartition("modules:")[2].split())


@pytest.fixture
def plain() -> Iterator[Plain]:
    process = Plain()
    yield process
    if process._process.poll() is None:
        process.stop()


def test_it_listens_on_its_own_port_only(plain: Plain) -> None:
    (port,) = plain.listening()
    assert f"127.0.0.1:{port} " in plain.ready_line


def test_it_does_not_answer_what_the_control_channel_is_asked(plain: Plain) -> None:
    (port,) = plain.listening()
    for path in ("/v1/clusters", "/v1/clusters/0/records"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            assert client.recv(100) == b"", "the connection is closed"


def test_it_has_no_module_of_the_kit_after_work_for_clients(plain: Plain) -> None:
    (port,) = plain.listening()
    config = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 2}
    producer = Producer(config | {"transactional.id": "tx"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", "x")
    producer.commit_transaction(20)
    consumer = Consumer(config | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    while (message := consumer.poll(1)) is None or message.error():
        pass
    consumer.close()
    imported = plain.stop()
    assert "barnabas.broker.apis.produce.produce" in imported
    assert [name for name in sorted(imported) if name.startswith(OF_THE_KIT)] == []


def test_its_seams_are_those_of_a_broker() -> None:
    options = serve_options(["--listen", "127.0.0.1:0"], {"BARNABAS_CONTROL": "http://token@127.0.0.1:1"})
    assert (options.prepare, options.companion) == (None, None)

    async def make_server() -> Server:
        return Server(load({}, {}, None, "dev"), 100, is_temporary=True)

    server = trio.run(make_server)
    world = server.world
    assert (server.dispatcher, world.make_loop, world.random_bytes) == (Dispatcher, Loop, os.urandom)
    assert (type(world.files), type(world.disk), world.now_ms) == (Files, DiskThreads, wall_clock_ms)
    assert (server.prepared_dir, server.inherited) == (None, {})
