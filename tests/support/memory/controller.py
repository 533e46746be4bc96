"""A controller without sockets and event loop: tests pass bytes in, take bytes out, and set the clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.apis.registry import CONTROLLER
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.controller_builder import open_controller
from barnabas.broker.net.connection import Connection
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES as FEATURES
from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
)
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from tests.support.memory.broker import Client
from tests.support.world import Clock, Flushes, simulated_world

ENDPOINT = Endpoint("CONTROLLER", "localhost", 19093)
SETS = {
    "process.roles": "controller",
    "node.id": "3000",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:0",
}


def directory(broker_id: int) -> bytes:
    """The id of a broker's log directory."""
    return bytes([100 + broker_id]) * 16


class MemoryController:
    """A process with the role controller, in this one, with its own clock."""

    def __init__(self, data_dir: Path, sets: Mapping[str, str] | None = None) -> None:
        self.clock = Clock()
        self.disk = Flushes()
        config = load({**SETS, **(sets or {})}, {}, None, "kafka")
        self.node = self.broker = open_controller(
            config,
            [str(data_dir)],
            simulated_world(self, self.disk),
            [ENDPOINT],
        )
        self._client = self.client()

    def client(self) -> ControllerClient:
        return ControllerClient(self)

    def advance(self, seconds: float) -> None:
        """Advance the clock, and run the timers that become due."""
        end = self.clock.now + seconds
        while (deadline := self.node.loop.timers.next_deadline()) <= end:
            self.clock.advance(max(0.0, deadline - self.clock.now))
            self.node.loop.timers.fire(self.clock.now)
        self.clock.advance(end - self.clock.now)

    def register(self, broker_id: int, **options: Any) -> int:
        """Register a broker; returns its epoch."""
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.node.cluster_id,
            incarnation_id=options.pop("incarnation_id", bytes([broker_id]) * 16),
            listeners=[BrokerRegistrationRequestListener(name="PLAINTEXT", host=f"host{broker_id}", port=9092)],
            features=[
                BrokerRegistrationRequestFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in FEATURES.items()
            ],
            log_dirs=[directory(broker_id)],
            **options,
        )
        answer = self._client.ask(request, 4)
        assert answer.error_code == 0, answer
        return answer.broker_epoch

    def heartbeat(self, broker_id: int) -> Any:
        """A heartbeat of a running broker that has read everything."""
        broker = self.node.image.brokers[broker_id]
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=broker.epoch, current_metadata_offset=self.node.image.offset
        )
        answer = self._client.ask(request, 2)
        assert answer.error_code == 0, answer
        return answer

    def unfence(self, broker_id: int) -> int:
        """Register a broker and have it serve."""
        epoch = self.register(broker_id)
        assert not self.heartbeat(broker_id).is_fenced
        return epoch

    def close(self) -> None:
        self.node.log_dirs.close(self.node.controller.close())


class ControllerClient(Client):
    """One connection to the controller listener."""

    def __init__(self, memory: MemoryController) -> None:
        super().__init__(memory)  # type: ignore[arg-type]
        before = self.connection
        self.connection = Connection(
            Dispatcher(memory.node, CONTROLLER).dispatch,
            listener="CONTROLLER",
            peer=("10.0.0.1", 5000),
            local=("127.0.0.1", 19093),
            max_frame_bytes=100 * 1024 * 1024,
            buffers=self.buffers,
            on_output=self._on_output,
            clock=lambda: memory.clock.now,
        )
        before.close()

    def ask(self, request: Message, version: int, response_class: type[Any] | None = None) -> Any:
        return super().ask(request, version, response_class or message_for(request.api_key)[1])
