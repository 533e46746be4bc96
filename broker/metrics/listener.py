"""The listener of metrics: its address, and the text that it answers with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

import trio

from barnabas.broker.metrics.exposition import (
    figures_of_broker,
    figures_of_clients,
    text_of_clients,
    text_of_figures,
    text_of_log_ins,
)
from barnabas.broker.metrics.http_server import serve_metrics

if TYPE_CHECKING:
    import socket

    from barnabas.broker.metrics.client_metrics import ClientMetrics
    from barnabas.broker.net.acceptor import Listener
    from barnabas.broker.replicas.load import Load
    from barnabas.wire.clients.broker_load import BrokerLoad


async def run_metrics_listener(
    listening: socket.socket,
    load: Load,
    clients: ClientMetrics,
    connections: Callable[[], int],
    listeners: Sequence[Listener],
) -> None:
    """Answer GET /metrics until cancelled."""
    log_ins = {listener.name: listener.log_ins for listener in listeners if listener.protocol != "PLAINTEXT"}

    async def body() -> AsyncGenerator[str, None]:
        yield text_of_figures(figures_of_broker(await _current(load), connections()))
        yield text_of_log_ins(log_ins)
        metrics = clients.kept
        if metrics is not None:
            yield text_of_figures(figures_of_clients(clients, metrics))
            for piece in text_of_clients(metrics):
                yield piece

    await serve_metrics(listening, body)


async def _current(load: Load) -> BrokerLoad:
    """The broker's current load; the disks are read in a thread."""
    answered = trio.Event()
    loads: list[BrokerLoad] = []

    def take(current: BrokerLoad) -> None:
        loads.append(current)
        answered.set()

    load.current(take)
    await answered.wait()
    return loads[0]
