"""The registry of APIs: the handler of each request, and the versions that are served.

A handler is a function `handler(ctx, request) -> response | None`, marked with `@api(RequestClass)`; None means that
there is no response (Produce with acks=0), and `bytes` are the whole frame of a response. One that may wait is
`async def`, or returns a coroutine (`broker.event_loop.waiting`).
A module of handlers is imported with its first request, to keep the start fast. `BROKER_APIS` and `CONTROLLER_APIS`
are the only lists of the APIs that are served on the two kinds of listeners; ApiVersions answers from them, with the
versions of the message declarations. An API of both lists may have a handler for each:
`@api(..., listener=CONTROLLER)`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from barnabas.broker.apis.parts import in_parts
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.frame import message_for, request_header_version, response_header_version
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.apis.parts import Parts
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.net.connection import Connection
    from barnabas.coord.security.acls import Operation

R = TypeVar("R", bound=Message)
H = TypeVar("H", bound="Handler")
HandlerOutcome: TypeAlias = "Message | Coroutine[Any, None, Message | bytes | None] | bytes | None"
Handler = Callable[["RequestContext", Any], HandlerOutcome]
ErrorShape = Callable[[Any, KafkaError], "Message | None"]
ServeUsual = Callable[["Broker", "Connection", memoryview, int, int], Any]
"""Serves the usual form of a request without the codec: `(broker, connection, frame, position, correlation id)`.

The position is the end of the client id. It returns the whole frame of the response, b"" if there is none; None to have
the request parsed; or an object with the request's fields for the handler, which goes on with what has been done.
"""
UsualServer = Callable[[int], "ServeUsual | None"]
"""The function for a version."""

BROKER: Final = "broker"
"""The listeners for clients and other brokers."""
CONTROLLER: Final = "controller"
"""The listeners of `controller.listener.names`."""
FORWARDING: Final = "forwarding"
"""The listeners of a broker without a controller in its process: `FORWARDED` has other handlers there."""

BROKER_APIS: Final[dict[ApiKey, str]] = {
    ApiKey.PRODUCE: "produce.produce",
    ApiKey.FETCH: "fetch.fetch",
    ApiKey.LIST_OFFSETS: "fetch.list_offsets",
    ApiKey.METADATA: "metadata.metadata",
    ApiKey.OFFSET_COMMIT: "groups.offset_commit",
    ApiKey.OFFSET_FETCH: "groups.offset_fetch",
    ApiKey.FIND_COORDINATOR: "groups.find_coordinator",
    ApiKey.JOIN_GROUP: "groups.classic_groups",
    ApiKey.HEARTBEAT: "groups.classic_groups",
    ApiKey.LEAVE_GROUP: "groups.classic_groups",
    ApiKey.SYNC_GROUP: "groups.classic_groups",
    ApiKey.DESCRIBE_GROUPS: "groups.group_admin",
    ApiKey.LIST_GROUPS: "groups.group_admin",
    ApiKey.SASL_HANDSHAKE: "security.sasl",
    ApiKey.API_VERSIONS: "metadata.api_versions",
    ApiKey.CREATE_TOPICS: "admin.topics",
    ApiKey.DELETE_TOPICS: "admin.topics",
    ApiKey.DELETE_RECORDS: "admin.delete_records",
    ApiKey.INIT_PRODUCER_ID: "transactions.transactions",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "fetch.list_offsets",
    ApiKey.ADD_PARTITIONS_TO_TXN: "transactions.transactions",
    ApiKey.ADD_OFFSETS_TO_TXN: "transactions.transactions",
    ApiKey.END_TXN: "transactions.transactions",
    ApiKey.WRITE_TXN_MARKERS: "transactions.transaction_admin",
    ApiKey.TXN_OFFSET_COMMIT: "transactions.txn_offset_commit",
    ApiKey.DESCRIBE_ACLS: "security.acls",
    ApiKey.CREATE_ACLS: "security.acls",
    ApiKey.DELETE_ACLS: "security.acls",
    ApiKey.DESCRIBE_CONFIGS: "admin.configs",
    ApiKey.ALTER_CONFIGS: "admin.configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "admin.alter_log_dirs",
    ApiKey.DESCRIBE_LOG_DIRS: "admin.log_dirs",
    ApiKey.SASL_AUTHENTICATE: "security.sasl",
    ApiKey.CREATE_PARTITIONS: "admin.topics",
    ApiKey.CREATE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.RENEW_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.DELETE_GROUPS: "groups.group_admin",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "admin.configs",
    ApiKey.ELECT_LEADERS: "admin.cluster_admin",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "admin.cluster_admin",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "admin.cluster_admin",
    ApiKey.OFFSET_DELETE: "groups.offset_delete",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "security.scram_credentials",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "security.scram_credentials",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "admin.client_quotas",
    ApiKey.ALTER_CLIENT_QUOTAS: "admin.client_quotas",
    ApiKey.DESCRIBE_QUORUM: "admin.quorum",
    ApiKey.UPDATE_FEATURES: "admin.features",
    ApiKey.DESCRIBE_CLUSTER: "metadata.describe_cluster",
    ApiKey.UNREGISTER_BROKER: "admin.cluster_admin",
    ApiKey.DESCRIBE_PRODUCERS: "transactions.producers",
    ApiKey.DESCRIBE_TRANSACTIONS: "transactions.transaction_admin",
    ApiKey.LIST_TRANSACTIONS: "transactions.transaction_admin",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "admin.telemetry",
    ApiKey.PUSH_TELEMETRY: "admin.telemetry",
    ApiKey.LIST_CONFIG_RESOURCES: "admin.configs",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "metadata.describe_topic_partitions",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "groups.consumer_groups",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "groups.consumer_groups",
    ApiKey.SHARE_FETCH: "share.share_fetch",
    ApiKey.SHARE_ACKNOWLEDGE: "share.share_acknowledge",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "groups.streams_groups",
    ApiKey.STREAMS_GROUP_DESCRIBE: "groups.streams_groups",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share.share_groups",
    ApiKey.SHARE_GROUP_DESCRIBE: "share.share_groups",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "share.share_state",
    ApiKey.READ_SHARE_GROUP_STATE: "share.share_state",
    ApiKey.WRITE_SHARE_GROUP_STATE: "share.share_state",
    ApiKey.DELETE_SHARE_GROUP_STATE: "share.share_state",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "share.share_state",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "share.share_group_offsets",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "share.share_group_offsets",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "share.share_group_offsets",
    ApiKey.ADD_RAFT_VOTER: "admin.quorum",
    ApiKey.REMOVE_RAFT_VOTER: "admin.quorum",
}
"""The APIs that brokers serve, each with its module in `broker.apis`."""

TELEMETRY_APIS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""The APIs that ApiVersions shows only if there is a listener that shows the metrics (`barnabas.metrics.listener`)."""

FORWARDED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""The APIs of brokers that only the controller can answer: a broker without one sends them on in an Envelope."""

CONTROLLER_APIS: Final[dict[ApiKey, str]] = {
    ApiKey.FETCH: "controller.fetch",
    ApiKey.SASL_HANDSHAKE: "security.sasl",
    ApiKey.API_VERSIONS: "metadata.api_versions",
    ApiKey.CREATE_TOPICS: "admin.topics",
    ApiKey.DELETE_TOPICS: "admin.topics",
    ApiKey.DESCRIBE_ACLS: "security.acls",
    ApiKey.CREATE_ACLS: "security.acls",
    ApiKey.DELETE_ACLS: "security.acls",
    ApiKey.DESCRIBE_CONFIGS: "admin.configs",
    ApiKey.ALTER_CONFIGS: "admin.configs",
    ApiKey.SASL_AUTHENTICATE: "security.sasl",
    ApiKey.CREATE_PARTITIONS: "admin.topics",
    ApiKey.CREATE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.RENEW_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.ELECT_LEADERS: "admin.cluster_admin",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "admin.configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "admin.cluster_admin",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "admin.cluster_admin",
    ApiKey.ALTER_CLIENT_QUOTAS: "admin.client_quotas",
    ApiKey.UNREGISTER_BROKER: "admin.cluster_admin",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "admin.cluster_admin",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "security.scram_credentials",
    ApiKey.DESCRIBE_QUORUM: "admin.quorum",
    ApiKey.ALTER_PARTITION: "admin.cluster_admin",
    ApiKey.UPDATE_FEATURES: "admin.features",
    ApiKey.ENVELOPE: "controller.envelope",
    ApiKey.FETCH_SNAPSHOT: "controller.fetch_snapshot",
    ApiKey.DESCRIBE_CLUSTER: "metadata.describe_cluster",
    ApiKey.BROKER_REGISTRATION: "admin.cluster_admin",
    ApiKey.BROKER_HEARTBEAT: "admin.cluster_admin",
    ApiKey.ALLOCATE_PRODUCER_IDS: "admin.cluster_admin",
    ApiKey.ADD_RAFT_VOTER: "admin.quorum",
    ApiKey.REMOVE_RAFT_VOTER: "admin.quorum",
    ApiKey.UPDATE_RAFT_VOTER: "admin.quorum",
}
"""The APIs that controllers serve, each with its module in `broker.apis`."""

_SERVED: Final = {
    BROKER: BROKER_APIS,
    CONTROLLER: CONTROLLER_APIS,
    FORWARDING: BROKER_APIS | dict.fromkeys(FORWARDED, "forwarding"),
}


class _Served(NamedTuple):
    """A handler and the other arguments of `api`."""

    handler: Handler
    on_error: ErrorShape | None
    send_before_close: bool
    usual: UsualServer | None


_handlers: dict[tuple[str, int], _Served] = {}


def api(
    request_class: type[R],
    *,
    listener: str = BROKER,
    on_error: ErrorShape | None = None,
    needs: Callable[[Broker], None] | None = None,
    requires: Operation | None = None,
    parts: Parts | Sequence[Parts] = (),
    send_before_close: bool = False,
    usual: UsualServer | None = None,
) -> Callable[[H], H]:
    """Register the decorated function for a request on one kind of listener.

    `needs(broker)` raises KafkaError while the API is not enabled. `requires` is the operation on the cluster that the
    sender must be allowed: else the whole request is answered CLUSTER_AUTHORIZATION_FAILED. `on_error(request, error)`
    returns the response for an error of the whole request; by default the top-level `error_code` and `error_message`
    of the response are set, or the connection is closed if it has no `error_code`. A request of many items is divided
    as `parts` says. `send_before_close`: a broker that stops sends the response of a coroutine before it closes the
    connection, since the request has an effect. `usual(version)` returns a function that serves the usual form of the
    request without the codec.
    """

    def register(handler: H) -> H:
        whole: Handler = handler
        if parts:
            response_class = message_for(request_class.api_key)[1]
            choices = parts if isinstance(parts, Sequence) else [parts]
            whole = in_parts(handler, choices, partial(_error_response, response_class, on_error))

        def when_enabled(ctx: RequestContext, request: R) -> HandlerOutcome:
            if needs is not None:
                needs(ctx.broker)
            if requires is not None:
                check_cluster(ctx, requires)
            return whole(ctx, request)

        is_conditional = needs is not None or requires is not None
        registered = when_enabled if is_conditional else whole
        before_close = send_before_close or bool(parts)
        _handlers[listener, request_class.api_key] = _Served(registered, on_error, before_close, usual)
        return handler

    return register


def check_cluster(ctx: RequestContext, operation: Operation) -> None:
    """KafkaError(CLUSTER_AUTHORIZATION_FAILED) if the request may not do something to the cluster."""
    if not ctx.is_allowed_on_cluster(operation):
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"Request {ctx.api_key.name} needs {operation.name} permission.",
        )


def _error_response(
    response_class: type[Message], on_error: ErrorShape | None, request: Message, error: KafkaError
) -> Message | None:
    if on_error is not None:
        return on_error(request, error)
    response = response_class()
    if not hasattr(response, "error_code"):
        return None
    response.error_code = int(error.code)
    if hasattr(response, "error_message"):
        response.error_message = error.message
    return response


class Route:
    """Handler and codecs of one API in one version, on one kind of listener."""

    __slots__ = (
        "api_key",
        "api_version",
        "first_error",
        "handler",
        "name",
        "on_error",
        "request_codec",
        "request_is_flexible",
        "response_class",
        "response_codec",
        "response_is_flexible",
        "send_before_close",
        "serve_usual",
    )

    def __init__(self, api_key: ApiKey, api_version: int, listener: str = BROKER) -> None:
        request_class, response_class = message_for(api_key)
        self.api_key = api_key
        self.api_version = api_version
        self.name = api_key.name
        served = _handler(api_key, listener)
        self.handler = served.handler
        self.on_error = served.on_error
        self.send_before_close = served.send_before_close
        self.serve_usual = None if served.usual is None else served.usual(api_version)
        self.request_codec = request_class.codec(api_version)
        self.response_codec = response_class.codec(api_version)
        self.response_class = response_class
        self.first_error: Callable[[Any], int] = _may_have_errors
        """Returns an error code in a response, 0 if it has none; metrics replace it by one that knows the class."""
        self.request_is_flexible = request_header_version(api_key, api_version) >= 2
        self.response_is_flexible = response_header_version(api_key, api_version) >= 1

    def error_response(self, request: Message, error: KafkaError) -> Message | None:
        """The response for an error of the whole request, or None if it has no `error_code`."""
        return _error_response(self.response_class, self.on_error, request, error)


def _may_have_errors(_: object) -> int:
    return 1


def _handler(api_key: ApiKey, listener: str) -> _Served:
    """An API's handler for its kind of listener, or else for brokers."""
    try:
        import_module(f"barnabas.broker.apis.{_SERVED[listener][api_key]}")
    except OSError as error:  # no descriptor is left to read it
        raise ProtocolError(f"{api_key.name} cannot be served now: {error}") from error
    return _handlers.get((listener, api_key)) or _handlers[BROKER, api_key]


def served_versions(api_key: ApiKey) -> tuple[int, int]:
    """The first and the last version of an API that are served."""
    request_class, _ = message_for(api_key)
    return request_class.min_version, request_class.max_version - request_class.latest_version_unstable


class Routes:
    """The routes of one kind of listener, each made when it is first needed."""

    __slots__ = ("_listener", "known")

    def __init__(self, listener: str) -> None:
        self._listener = listener
        self.known: dict[int, Route] = {}
        """By API key << 16 | version: the routes that were used before."""

    def find(self, api_key: int, api_version: int) -> Route:
        """The route of a request. ProtocolError if its API or version is not served here."""
        route = self.known.get(api_key << 16 | api_version)
        if route is not None:
            return route
        try:
            key = ApiKey(api_key)
        except ValueError:
            raise ProtocolError(f"unknown API key {api_key}") from None
        if key not in _SERVED[self._listener]:
            raise ProtocolError(f"{key.name} is not served")
        first, last = served_versions(key)
        if not first <= api_version <= last:
            raise ProtocolError(f"{key.name} version {api_version} is not served (only {first} to {last})")
        route = self.known[api_key << 16 | api_version] = Route(key, api_version, self._listener)
        return route


ROUTES: Final = {listener: Routes(listener) for listener in _SERVED}
"""The routes by kind of listener."""
