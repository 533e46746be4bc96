"""A controller without sockets and event loop: tests pass bytes in, take bytes out, and set the clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.broker.apis.registry import CONTROLLER
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.start.controller_builder import open_controller
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES as FEATURES
from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
)
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from tests.support.memory.broker import Client, InMemory
from tests.support.world import simulated_world

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


class MemoryController(InMemory):
    """A process that is only a controller."""

    kind = CONTROLLER
    listener = "CONTROLLER"
    address = ("127.0.0.1", 19093)

    def __init__(self, data_dir: Path, sets: Mapping[str, str] | None = None) -> None:
        super().__init__()
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
        response = self._client.ask(request, 4)
        assert response.error_code == 0, response
        return response.broker_epoch

    def heartbeat(self, broker_id: int) -> Any:
        """A heartbeat of a running broker that has read everything."""
        broker = self.node.image.brokers[broker_id]
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=broker.epoch, current_metadata_offset=self.node.image.offset
        )
        response = self._client.ask(request, 2)
        assert response.error_code == 0, response
        return response

    def unfence(self, broker_id: int) -> int:
        """Register a broker and have it serve."""
        epoch = self.register(broker_id)
        assert not self.heartbeat(broker_id).is_fenced
        return epoch

    def close(self) -> None:
        self.node.log_dirs.close(self.node.controller.close())


class ControllerClient(Client):
    """One connection to the controller listener."""

    def ask(self, request: Message, version: int, response_class: type[Any] | None = None) -> Any:
        return super().ask(request, version, response_class or message_for(request.api_key)[1])
