"""The config keys that limit clients, by area: a table of a generated page.

Every key under a prefix is in the table, so a new one cannot be forgotten. The table says what happens if a key is set
that has no effect in Barnabas; the other keys are described in the sections of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.wire.configdef import ConfigKey

WARNING: Final = "a warning in the log"


class Area(NamedTuple):
    """Keys with the same consequence where Barnabas does not act on them."""

    title: str
    prefixes: tuple[str, ...]
    """The beginnings of the names, or whole names."""
    otherwise: str
    """The consequence if a key of the area is set that has no effect."""


AREAS: Final = (
    Area(
        "Connections",
        (
            *("max.connection", "connections.", "connection.", "inter.broker.listener.name"),
            *("listener.security.protocol.map", "security.inter.broker.protocol", "quota.window."),
            *("socket.listen.backlog.size", "barnabas.authentication.", "barnabas.unauthenticated."),
        ),
        WARNING,
    ),
    Area(
        "Size and number of requests",
        (
            "socket.request.max.bytes",
            "queued.max.request.bytes",
            "barnabas.request.",
            "max.request.partition.size.limit",
        ),
        WARNING,
    ),
    Area(
        "Requests that wait",
        ("queued.max.requests", "num.io.threads", "num.network.threads", "request.timeout.ms"),
        f"{WARNING}. One thread serves all connections in turns of a few milliseconds. Requests that wait stay in "
        "their connections: of each, at most what one read has brought, and it is not read again before they are done",
    ),
    Area(
        "Records",
        (
            "message.max.bytes",
            "fetch.max.bytes",
            "max.decompressed.",
            "barnabas.log.",
            "barnabas.produce.",
        ),
        WARNING,
    ),
    Area(
        "Client telemetry and metrics",
        (
            "telemetry.max.bytes",
            "barnabas.client.metrics.max.bytes",
            "barnabas.metrics.listener",
            "barnabas.metrics.labels.max",
        ),
        "Bound what one push of a client may have and what is kept of all of them; a push that comes too early is "
        "refused. The listener of metrics has no authentication and tells the names of clients, groups and topics: "
        "8 connections at a time, 5 s for a request, 30 s for taking the answer.",
    ),
    Area(
        "Groups, transactions and sessions",
        (
            *("group.max.", "group.consumer.max.size", "group.share.max.s", "group.streams.max.size", "barnabas.group"),
            *(
                "offset.metadata.max.bytes",
                "transaction.max.timeout.ms",
                "barnabas.transactional",
                "max.incremental.fetch.",
                "barnabas.partition.producers.",
            ),
        ),
        WARNING,
    ),
    Area(
        "Topics",
        (
            *("auto.create.topics.enable", "delete.topic.enable", "create.topic.policy.", "alter.config.policy."),
            *("barnabas.partitions.", "barnabas.config.resources."),
        ),
        f"{WARNING}; without an authorizer every client may create, change and delete topics",
    ),
    Area(
        "Quotas of clients",
        (
            *("client.quota.", "controller.quota.", "replication.quota.", "alter.log.dirs.replication.quota."),
            "barnabas.client.quotas.",
        ),
        f"{WARNING}. Quotas of clients are those that AlterClientQuotas sets, without a callback in Java; quotas of "
        "replication are measured over 11 windows of a second",
    ),
    Area(
        "Authorization",
        (
            *("authorizer.", "super.users", "allow.everyone.", "early.start.listeners"),
            *("principal.builder.", "security.providers", "delegation.token."),
            *("barnabas.acls.", "barnabas.delegation.", "barnabas.scram."),
        ),
        f"{WARNING}; every listener is opened when the broker has the metadata, with all ACLs",
    ),
    Area(
        "TLS",
        ("ssl.",),
        f"{WARNING}; it belongs to the JVM, whose place OpenSSL takes here",
    ),
    Area(
        "SASL",
        ("sasl.",),
        f"{WARNING}; they belong to mechanisms that Barnabas does not have, as GSSAPI. A broker logs in at other nodes "
        "with PLAIN, SCRAM, or a token of a file",
    ),
    Area("Secrets in files", ("config.providers",), f"{WARNING}; values are taken as they are"),
)


def rows() -> Iterator[tuple[str, str, str]]:
    """(area, keys, effect): a row for the keys with an effect of an area, and one for the others."""
    for area in AREAS:
        keys = [key for name, key in sorted(BROKER_KEYS.items()) if name.startswith(area.prefixes)]
        used = [_name(key) for key in keys if key.used]
        if used:
            yield area.title, ", ".join(used), "described above"
        idle = [_name(key) for key in keys if not key.used]
        if idle:
            yield area.title, ", ".join(idle), f"none: {area.otherwise}"


def _name(key: ConfigKey[Any]) -> str:
    return f"`{key.name}`"
