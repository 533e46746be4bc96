"""The config keys that limit what clients can do to a broker, and what each does here: a table of a generated page.

Every key under a prefix is in the table, so a new one cannot be forgotten. Of a key that Barnabas acts on the table has
its documentation; of the others, what happens if it is set.
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
    """What happens if a key of the area is set that Barnabas does not act on."""


AREAS: Final = (
    Area(
        "Connections",
        (
            *("max.connection", "connections.", "connection.", "inter.broker.listener.name"),
            *("listener.security.protocol.map", "security.inter.broker.protocol", "quota.window."),
            "socket.listen.backlog.size",
        ),
        f"{WARNING}; there is no authentication that it could concern",
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
        "Groups, transactions and sessions",
        (
            *("group.max.", "group.consumer.max.size", "group.share.max.s", "group.streams.max.size", "barnabas.group"),
            *(
                "offset.metadata.max.bytes",
                "transaction.max.timeout.ms",
                "barnabas.transactional",
                "max.incremental.fetch.",
            ),
        ),
        WARNING,
    ),
    Area(
        "Topics",
        (*("auto.create.topics.enable", "delete.topic.enable", "create.topic.policy.", "alter.config.policy."),),
        f"{WARNING}; every client may create, change and delete topics",
    ),
    Area(
        "Quotas of clients",
        ("client.quota.", "controller.quota.", "replication.quota.", "alter.log.dirs.replication.quota."),
        f"{WARNING}; there are no quotas of clients, and AlterClientQuotas is not served",
    ),
    Area(
        "Authorization",
        ("authorizer.", "principal.builder.", "security.providers", "delegation.token."),
        f"{WARNING}; there is no authorizer: every client may do everything that is served",
    ),
    Area(
        "TLS",
        ("ssl.",),
        f"{WARNING}; it belongs to the JVM, whose place OpenSSL takes here",
    ),
    Area(
        "SASL",
        ("sasl.",),
        f"{WARNING}; a listener whose protocol is SASL_PLAINTEXT or SASL_SSL is not opened: the broker does not start",
    ),
    Area("Secrets in files", ("config.providers",), f"{WARNING}; values are taken as they are"),
)


def rows() -> Iterator[tuple[str, str, str]]:
    """(area, keys, what they do): a row for each key that Barnabas acts on, and one for the others of an area."""
    for area in AREAS:
        keys = [key for name, key in sorted(BROKER_KEYS.items()) if name.startswith(area.prefixes)]
        for key in keys:
            if key.used:
                yield area.title, _name(key), key.doc
        idle = [_name(key) for key in keys if not key.used]
        if idle:
            yield area.title, ", ".join(idle), f"Not acted on: {area.otherwise}."


def _name(key: ConfigKey[Any]) -> str:
    return f"`{key.name}`"
