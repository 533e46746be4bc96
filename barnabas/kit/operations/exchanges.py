"""The operation `exchanges`: what goes over a broker's connections, as bytes, for who watches (`traffic.capture`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.kit.operations.registry import operation
from barnabas.kit.operations.requests import api_named
from barnabas.kit.values import Values

if TYPE_CHECKING:
    from barnabas.broker.server import Server
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.traffic.capture import Capture, Exchange

KEYS: Final = ("after", "apis", "client_id", "not_client_id")


@operation("exchanges", *KEYS)
async def exchanges(cluster: VirtualCluster, values: Values) -> object:
    """The exchanges that ended after the number `after` (0: all that are kept); the question begins a watch."""
    return exchanges_of(cluster.capture, cluster.server, values)


def exchanges_of(capture: Capture, server: Server, values: Values) -> dict[str, Any]:
    """The same of any broker: those of some APIs, of clients whose id contains a text, or does not begin with one."""
    apis = {int(api_named(str(name))) for name in values.list_of("apis")}
    client_id = values.text("client_id", "").casefold()
    left_out = values.text("not_client_id", None)

    def select(exchange: Exchange) -> bool:
        name = exchange.client_id or ""
        if apis and exchange.api not in apis:
            return False
        if left_out is not None and name.startswith(left_out):
            return False
        return client_id in name.casefold()

    loop = server.broker.loop
    capture.watch(server.reactor, loop.timers, loop.now)
    return capture.after(values.integer("after", 0), select)
