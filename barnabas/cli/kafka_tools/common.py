"""What the tools share: connecting, files with properties, tables as Java's printf makes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from barnabas import __version__
from barnabas.cli.connect.properties_file import read_properties as read_properties
from barnabas.cli.kafka_tools.arguments import Options, Usage
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.security.settings import Security, security_from

TIMEOUT_S = 60.0
"""Kafka's default.api.timeout.ms, seconds."""
ACTED_ON = {"bootstrap.servers", "client.id", "default.api.timeout.ms"}
SECURITY = ("security.", "sasl.", "ssl.")
"""How the keys begin that `barnabas.client.security` acts on, or refuses."""
INTERNAL_TOPICS = {"__consumer_offsets", "__transaction_state", "__share_group_state"}


class Failed(Exception):  # noqa: N818 (a condition, named as such)
    """The command failed, for a reason that its text says in the tool's own form."""


T = TypeVar("T")


class ToolCluster(Cluster):
    """A cluster that raises the error that a broker answered, where `Cluster` raises `NotFound`."""

    def retry(self, attempt: Callable[[float], T]) -> T:
        """As in `Cluster`."""
        try:
            return super().retry(attempt)
        except NotFound as error:
            raise error.answer or error from None


def connect(options: Options, *, timeout_s: float | None = None) -> Cluster:
    """A client for `--bootstrap-server` with the configuration of `--command-config`; sends nothing yet."""
    file = options.get("command-config") if "command-config" in options.parser.options else None
    config = read_properties(file) if file is not None else {}
    warn_of_unused(config, ACTED_ON)
    return connect_to(options.get("bootstrap-server"), config, timeout_s)


def connect_to(bootstrap: str, config: dict[str, str], timeout_s: float | None = None) -> Cluster:
    """A client with a configuration of Kafka's clients. `Usage` for a mistake in it, or in the address."""
    limit = float(config.get("default.api.timeout.ms", TIMEOUT_S * 1000)) / 1000
    try:
        return ToolCluster(
            bootstrap,
            client_id=config.get("client.id", "barnabas"),
            software_version=__version__,
            timeout_s=timeout_s or limit,
            security=_security(config),
        )
    except ValueError as error:
        raise Usage(str(error)) from None


def _security(config: dict[str, str]) -> Security | None:
    """TLS and SASL, if keys of the configuration are about them; ValueError for a mistake."""
    if not any(key.startswith(SECURITY) for key in config):
        return None
    return security_from(config)


def key_values(texts: Iterable[str]) -> dict[str, str]:
    """`key=value` arguments, as Kafka's parseKeyValueArgs: a key without a value is an error."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ValueError(f"Missing value for key {key}" if key else f"Invalid command line properties: {text}")
        values[key] = value
    return values


def warn_of_unused(config: Iterable[str], acted_on: Iterable[str]) -> None:
    """Say on stderr which keys of a client's configuration have no effect."""
    unused = sorted(key for key in set(config) - set(acted_on) if not key.startswith(SECURITY))
    if unused:
        print(f"WARN: no effect in Barnabas' commands: {', '.join(unused)}", file=sys.stderr)


def padded(values: Sequence[object], widths: Sequence[int]) -> str:
    """Values in columns of at least these widths, separated by a blank; the last is not padded if it has no width."""
    columns = [f"{value!s:<{width}}" for value, width in zip(values, widths, strict=False)]
    columns += [str(value) for value in values[len(widths) :]]
    return " ".join(columns)


def chosen(text: str | None, known: Sequence[str], what: str, plural: str) -> list[str]:
    """A list of states or types; ValueError with Kafka's message for others."""
    by_name = {name.lower(): name for name in known}
    words = [word.strip().lower().replace("_", "") for word in (text or "").split(",") if word]
    if any(word not in by_name for word in words):
        raise ValueError(f"Invalid {what} list '{text}'. Valid {plural} are: {', '.join(known)}")
    return [by_name[word] for word in words]
