"""The listener of metrics: what it answers to /metrics, /health and /ready, from the parts of a broker."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.exporter.http_server import serve_metrics
from barnabas.broker.exporter.scrape import Scraper
from barnabas.broker.metadata.lifecycle import BrokerLifecycleState

if TYPE_CHECKING:
    import socket

    from barnabas.broker.context import Broker
    from barnabas.broker.net.acceptor import Listener


async def run_metrics_listener(
    listening: socket.socket,
    broker: Broker,
    listeners: Sequence[Listener],
    connections: Mapping[str, int],
) -> None:
    """Answer requests until cancelled. `connections` has the number of connections by listener."""
    meter = broker.meter
    assert meter is not None
    scraper = Scraper(broker, meter, listeners, connections)
    gc.callbacks.append(meter.collected)
    try:
        await serve_metrics(listening, scraper.body, lambda: why_not_ready(broker))
    finally:
        gc.callbacks.remove(meter.collected)


def why_not_ready(broker: Broker) -> str | None:
    """Why clients should not use this broker now, as a sentence; None if they can."""
    if broker.is_stopping or broker.halt_reason is not None:
        return "The broker is stopping."
    if "lifecycle" not in broker.__dict__:
        return None  # a single node serves from the end of its start
    if broker.lifecycle.state is not BrokerLifecycleState.RUNNING:
        return f"The broker is not in the cluster: its state is {broker.lifecycle.state.name}."
    registered = broker.image.brokers.get(broker.node_id)
    if registered is None:
        return "The broker is not registered."
    return "The broker is fenced." if registered.fenced else None
