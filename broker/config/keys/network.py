"""Listeners, sockets and connections."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    INT_MAX,
    LOW,
    MEDIUM,
    PER_BROKER,
    integer,
    list_of,
    long,
    string,
)

ADVERTISED_LISTENERS = list_of(
    "advertised.listeners",
    None,
    "",
    HIGH,
    "Addresses reported to clients. When unset, it is the address that the client connected to.",
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = integer(
    "connection.failed.authentication.delay.ms",
    100,
    "[0,...]",
    LOW,
    "Delay before a connection that failed to authenticate is closed.",
)
CONNECTIONS_MAX_IDLE_MS = long(
    "connections.max.idle.ms", 600_000, "", MEDIUM, "Time after which a connection without traffic is closed."
)
CONNECTIONS_MAX_REAUTH_MS = long(
    "connections.max.reauth.ms",
    0,
    "",
    MEDIUM,
    "Time after which an authenticated connection must authenticate again; 0 is never.",
)
INTER_BROKER_LISTENER_NAME = string(
    "inter.broker.listener.name",
    None,
    "",
    MEDIUM,
    "Name of the listener that brokers use among themselves. If there are others, it is exempt from max.connections "
    "and max.connection.creation.rate of the broker; the idlest connection of another listener is closed instead.",
)
LISTENER_SECURITY_PROTOCOL_MAP = string(
    "listener.security.protocol.map",
    "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "",
    LOW,
    "Security protocol of each listener name.",
    dynamic=PER_BROKER,
)
LISTENERS = list_of(
    "listeners",
    ("PLAINTEXT://:9092",),
    "",
    HIGH,
    "Addresses to listen on, as NAME://host:port; port 0 takes a free one.",
    dynamic=PER_BROKER,
)
MAX_CONNECTION_CREATION_RATE = integer(
    "max.connection.creation.rate",
    INT_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum number of new connections per second, also for one listener (listener.name.<listener>. before the name). "
    "Further ones wait until they are accepted.",
    dynamic=CLUSTER_WIDE,
)
MAX_CONNECTIONS = integer(
    "max.connections",
    INT_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum number of connections at a time, also for one listener (listener.name.<listener>. before the name). "
    "Further ones wait until one is closed.",
    dynamic=CLUSTER_WIDE,
)
MAX_CONNECTIONS_PER_IP = integer(
    "max.connections.per.ip",
    INT_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum number of connections at a time from one address; further ones are closed.",
    dynamic=CLUSTER_WIDE,
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = string(
    "max.connections.per.ip.overrides",
    "",
    "",
    MEDIUM,
    "Maximum number of connections at a time from given hosts or addresses, as host:number pairs.",
    dynamic=CLUSTER_WIDE,
)
QUEUED_MAX_REQUEST_BYTES = long(
    "queued.max.request.bytes",
    -1,
    "",
    MEDIUM,
    "Maximum number of bytes of requests that are being read or wait to be handled; -1 is no limit.",
)
SOCKET_LISTEN_BACKLOG_SIZE = integer(
    "socket.listen.backlog.size",
    50,
    "[1,...]",
    MEDIUM,
    "Connections the system keeps waiting before they are accepted.",
)
SOCKET_REQUEST_MAX_BYTES = integer("socket.request.max.bytes", 104_857_600, "[1,...]", HIGH, "Largest request frame.")
