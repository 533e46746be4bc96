"""Nodes of a cluster in the process of the tests: whole servers in one loop of trio, which has a thread of its own.

They speak with each other and with clients over sockets, as nodes in processes do, and cost no start of a process. A
node is stopped as by SIGTERM, or killed: then its sockets are closed and nothing is flushed, so that its files are as
the page cache has them after a process was killed. What a process is for (kill -9, SIGSTOP, its exit code and output)
is tested with processes.
"""

from __future__ import annotations

import logging
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path

import trio

from barnabas.broker.config.load import load_options
from barnabas.broker.config.options import ServeOptions
from barnabas.broker.server import EXIT_FAILED, EXIT_MISTAKE, EXIT_OK
from barnabas.broker.server import Server as Broker
from barnabas.broker.start.logging_setup import KafkaFormatter
from barnabas.broker.start.start_errors import StartError
from barnabas.broker.world import World
from barnabas.storage.files import Files
from barnabas.wire.configdef import ConfigError
from barnabas.wire.messages.cluster import BrokerHeartbeatRequest
from tests.support.processes.server import START_TIMEOUT_S, STOP_TIMEOUT_S, Server

_node: ContextVar[object] = ContextVar("node")
"""Whose task this is."""


class Host:
    """The thread in which the nodes of a cluster are tasks."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._has_begun = threading.Event()
        self._token: trio.lowlevel.TrioToken
        self._nursery: trio.Nursery
        self._level = logging.NOTSET

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._level = logging.getLogger().level
            logging.getLogger().setLevel(logging.INFO)
            self._has_begun.clear()
            self._thread = threading.Thread(target=trio.run, args=(self._run,), name="nodes")
            self._thread.start()
            self._has_begun.wait()

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self._nursery:
            self._has_begun.set()
            await trio.sleep_forever()

    def begin(self, task: Callable[[], Awaitable[None]]) -> None:
        """Start a task in the loop."""
        self.start()
        self.call(lambda: self._nursery.start_soon(task))

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, soon."""
        self._token.run_sync_soon(function)

    def close(self) -> None:
        """End the tasks that are left, and the thread."""
        if self._thread is not None:
            self.call(self._nursery.cancel_scope.cancel)
            self._thread.join()
            self._thread = None
            logging.getLogger().setLevel(self._level)


class LocalNode(Server):
    """A node with the interface of one in a process."""

    name = "node"

    def __init__(self, data_dir: Path, keys: Mapping[str, str], cluster_id: str, port: int, host: Host) -> None:
        """`keys` are configuration keys, without `log.dirs`."""
        super().__init__(data_dir, config=dict(keys), port=port)
        self._cluster_id = cluster_id
        self._in = host
        self._serves = threading.Event()
        self._ended = threading.Event()
        self._ended.set()
        self._code: int | None = None
        self._is_killed = False
        self._scope = trio.CancelScope()
        self._signals: trio.MemorySendChannel[int]
        self._server: Broker
        self.when_killed: Callable[[], None] = lambda: None
        """Called when it was killed."""
        self.make_files: Callable[[], Files] = Files
        """Makes what it uses in place of the system's files, at each start."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        raise NotImplementedError("it has no process")

    def _is_ready(self) -> bool:
        return self._serves.is_set()

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return not self._ended.is_set()

    def spawn(self) -> None:
        """Start it without waiting."""
        assert not self.is_running, "already running"
        self._serves.clear()
        self._ended.clear()
        self._code, self._is_killed, self._scope = None, False, trio.CancelScope()
        self._in.begin(self._run)

    def wait_ready(self) -> None:
        """Wait until clients are accepted; RuntimeError with the end of the log if it ends or is too slow."""
        if not self._serves.wait(START_TIMEOUT_S) or not self.is_running:
            self.kill9()
            raise RuntimeError(f"{self.data_dir.name} does not serve (exit code {self._code}):\n{self.log()[-4000:]}")

    def terminate(self) -> None:
        """As SIGTERM: it stops in a controlled way."""
        if self.is_running:
            self._in.call(self._terminate)

    def _terminate(self) -> None:
        if self.is_running:
            try:
                self._signals.send_nowait(signal.SIGTERM)
            except (trio.WouldBlock, trio.BrokenResourceError):
                pass  # the signal is sent already, or the node ends

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """Stop it, and kill it when that takes too long. The exit code that its process would have."""
        self.terminate()
        if not self._ended.wait(timeout_s):
            self.kill9()
        return self._code

    def kill9(self) -> None:
        """End it as a killed process does."""
        self._is_killed = True
        if self.is_running:
            self._in.call(self._scope.cancel)
            self._ended.wait()
            self.when_killed()

    def fence(self, broker: int) -> None:
        """Have this controller fence a broker that was killed, whose session would go on."""
        self._in.call(lambda: self._fence(broker))

    def _fence(self, broker_id: int) -> None:
        if not self.is_running:
            return
        image = self._server.broker.image
        broker = image.brokers[broker_id]
        heartbeat = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=broker.epoch, current_metadata_offset=image.offset, want_fence=True
        )
        controller = self._server.broker.active_controller
        controller.request(heartbeat, heartbeat.max_version, lambda _answer: None)
        controller.local.end_session(broker_id)

    # -- in the loop

    async def _run(self) -> None:
        _node.set(self)
        with self.log_path.open("a", encoding="utf-8") as file:
            handler = logging.StreamHandler(file)
            handler.setFormatter(KafkaFormatter())
            handler.addFilter(lambda _record: _node.get(None) is self)
            logging.getLogger().addHandler(handler)
            try:
                with self._scope:
                    self._code = await self._serve()
            except (ConfigError, StartError) as error:
                file.write(f"barnabas serve: {error}\n")
                self._code = EXIT_MISTAKE
            except Exception:
                traceback.print_exc(file=file)
                self._code = EXIT_FAILED
            finally:
                logging.getLogger().removeHandler(handler)
                self._ended.set()
                self._serves.set()  # the thread that waits for the start checks `_ended`

    async def _serve(self) -> int:
        """As `barnabas serve` does."""
        self._signals, signals = trio.open_memory_channel[int](1)
        options = ServeOptions(
            sets={**self.config, "log.dirs": str(self.data_dir)}, environment={"CLUSTER_ID": self._cluster_id}
        )
        server = self._server = Broker(load_options(options), world=World(files=self.make_files()))
        server.start()
        try:
            async with trio.open_nursery() as nursery:
                server.run_in(nursery)
                if await server.has_joined(signals):
                    self._serves.set()
                    await server.wait_for_stop(signals)
                await server.drain()
                nursery.cancel_scope.cancel()
        finally:
            server.close(is_killed=self._is_killed)
        if server.mistake is not None:
            raise server.mistake
        return EXIT_OK if server.is_clean and server.broker.halt_reason is None else EXIT_FAILED
