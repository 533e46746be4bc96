"""The dispatcher of a broker with a control channel: every request and response of its clients is seen decoded.

Its routes have the handlers of the registry, wrapped: a request passes the cluster's traffic (recorder, fault rules)
before and after its handler. A broker that acts as an earlier release has the routes of that release.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.apis.registry import CONTROLLER, Route, Routes
from barnabas.broker.event_loop.waiting import outcome_of
from barnabas.broker.net.client.network_client import SOFTWARE_NAME
from barnabas.broker.replicas.leader.fetch_sessions import replica_of
from barnabas.kit.traffic.decoding import decoded
from barnabas.kit.traffic.recorder import Recorder
from barnabas.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.apis.registry import Handler, HandlerOutcome
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.net.connection import Connection
    from barnabas.kit.traffic.faults.rules import Faults
    from barnabas.kit.traffic.release import Release
    from barnabas.wire.schema import Message

MAX_FIRST_BYTES: Final = 256
"""Bytes of a connection's first request that are looked at."""


class Traffic:
    """The recorder and the fault rules of a cluster's clients."""

    def __init__(self, release: Release | None = None) -> None:
        """`release` is the Kafka version that the broker answers as."""
        self.recorder = Recorder()
        self.release = release
        self._faults: Faults | None = None

    @property
    def faults(self) -> Faults:
        """The fault rules; created when they are first asked for."""
        if self._faults is None:
            from barnabas.kit.traffic.faults.rules import Faults

            self._faults = Faults()
        return self._faults

    def dispatcher(self, broker: Broker, listener: str) -> Dispatcher:
        """The dispatcher of a kind of listener; requests to a controller do not come from clients."""
        if listener == CONTROLLER:
            return Dispatcher(broker, listener)
        return ControlledDispatcher(broker, listener, ControlledRoutes(listener, self))

    def serve(self, route: Route, handler: Handler, ctx: RequestContext, request: Message) -> HandlerOutcome:
        """Handle a request; return the handler's result, and raise its errors."""
        return handler(ctx, request) if _is_of_broker(ctx, request) else self._recorded(route, handler, ctx, request)

    async def _recorded(self, route: Route, handler: Handler, ctx: RequestContext, request: Message) -> Message | None:
        entry, named = self.recorder.begin(ctx, request)
        response: Message | None
        try:
            if self._faults is None or self._faults.is_empty:
                response = await outcome_of(handler(ctx, request))
            else:
                from barnabas.kit.traffic.faults.serving import Serving

                response = await Serving(self._faults, route, handler, ctx, request, named).serve()
        except GeneratorExit:
            self.recorder.closed(entry)
            raise
        except Exception as error:
            self.recorder.end(entry, error, ctx)
            raise
        self.recorder.end(entry, decoded(route, response), ctx)
        return response


def _is_of_broker(ctx: RequestContext, request: Any) -> bool:
    """Whether a request comes from a follower, which may be an Apache Kafka broker, and not from a client."""
    if ctx.api_key == ApiKey.FETCH:
        return replica_of(request) >= 0
    return ctx.api_key == ApiKey.OFFSET_FOR_LEADER_EPOCH and bool(request.replica_id >= 0)


class ControlledDispatcher(Dispatcher):
    """Serves clients by the routes of a cluster's traffic, and other brokers of Barnabas as any broker does.

    A connection belongs to a broker if it begins as the brokers' client does (`broker.net.client.network_client`):
    requests between brokers are not recorded, have no faults, and are served in all versions.
    """

    __slots__ = ("_brokers", "_served_by")

    def __init__(self, broker: Broker, listener: str, routes: Routes) -> None:
        super().__init__(broker, listener, routes)
        self._brokers = Dispatcher(broker, listener)
        self._served_by: dict[Connection, Callable[[Connection, memoryview], None]] = {}

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """As in `Dispatcher`."""
        dispatch = self._served_by.get(connection)
        if dispatch is None:
            dispatch = self._brokers.dispatch if _begins_as_broker(frame) else super().dispatch
            self._served_by[connection] = dispatch
            connection.on_close.append(lambda: self._forget(connection))
        dispatch(connection, frame)

    def _forget(self, connection: Connection) -> None:
        self._served_by.pop(connection, None)


def _begins_as_broker(frame: memoryview) -> bool:
    """Whether a connection's first request is the ApiVersions of a broker of Barnabas."""
    head = bytes(frame[:MAX_FIRST_BYTES])
    is_versions = head[:2] == ApiKey.API_VERSIONS.to_bytes(2, "big")
    return is_versions and head[10:].startswith(b"broker-") and SOFTWARE_NAME.encode() in head


class ControlledRoutes(Routes):
    """Routes with handlers that pass the traffic of a cluster."""

    __slots__ = ("_traffic",)

    def __init__(self, listener: str, traffic: Traffic) -> None:
        super().__init__(listener)
        self._traffic = traffic

    def find(self, api_key: int, api_version: int) -> Route:
        """The route of a request. ProtocolError if its API or version is not served, by the release it acts as."""
        route = self.known.get(api_key << 16 | api_version)
        if route is not None:
            return route
        release = self._traffic.release
        if release is not None:
            release.check(api_key, api_version)
        route = super().find(api_key, api_version)
        handler = route.handler if release is None else release.handler(route.api_key, route.handler)
        route.handler = partial(self._traffic.serve, route, handler)
        route.serve_usual = None  # recorder and rules look at the fields of a message
        return route
