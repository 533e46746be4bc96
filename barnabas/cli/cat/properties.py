"""The properties of librdkafka that `cat` serves (-X, -F): each has an effect, every other one is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from barnabas.cli.connect.client_config import checked_key, is_security_key
from barnabas.terminal.suggestion import suggestion

PROPERTIES = {
    "bootstrap.servers": "addresses of brokers, as -b",
    "client.id": "the name of this client",
    "acks": "0, 1 or all",
    "compression.codec": "as -z",
    "enable.idempotence": "true or false",
    "transactional.id": "one transaction for all messages",
    "batch.size": "bytes of a batch",
    "message.timeout.ms": "how long a batch is tried",
    "partitioner": "consistent, consistent_random, murmur2, murmur2_random or random",
    "group.id": "as -G",
    "group.instance.id": "a static member of the group",
    "auto.offset.reset": "where a group without offsets begins: earliest or latest",
    "isolation.level": "read_committed or read_uncommitted",
}
ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "request.required.acks": "acks",
    "compression.type": "compression.codec",
    "delivery.timeout.ms": "message.timeout.ms",
}


def read_properties(file: Path | None, assignments: Sequence[str]) -> dict[str, str]:
    """The properties of a file and of -X, which come later. A usage error names one that is not served."""
    texts = [] if file is None else file.read_text().splitlines()
    properties: dict[str, str] = {}
    for text in [*(line for line in map(str.strip, texts) if line and not line.startswith("#")), *assignments]:
        if text == "list":
            for name, meaning in PROPERTIES.items():
                click.echo(f"{name:<22}{meaning}")
            from barnabas.client.security.keys import KEYS

            click.echo(f"{', '.join(KEYS)}: TLS and SASL")
            raise click.exceptions.Exit(0)
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"must be NAME=VALUE or list, not {text!r}", param_hint="-X")
        name = name.strip().removeprefix("topic.")
        name = ALIASES.get(name, name)
        if is_security_key(name):
            try:
                name = checked_key(name)
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint="-X") from None
        elif name not in PROPERTIES:
            raise click.BadParameter(
                f"the property {name!r} is not served{suggestion(name, PROPERTIES)}; '-X list' lists those that are",
                param_hint="-X",
            )
        properties[name] = value.strip()
    return properties


def choice(properties: dict[str, str] | object, name: str, allowed: Sequence[str], default: str) -> str:
    """The value of a property, one of a few."""
    assert isinstance(properties, dict)
    value: str = properties.get(name, default)
    if value not in allowed:
        raise click.BadParameter(f"{name} must be {', '.join(allowed)}, not {value!r}", param_hint="-X")
    return value


def number(properties: dict[str, str] | object, name: str, default: int) -> int:
    """The value of a property, a positive number."""
    assert isinstance(properties, dict)
    text: str = properties.get(name, str(default))
    if not text.isdigit() or not int(text):
        raise click.BadParameter(f"{name} must be a positive number, not {text!r}", param_hint="-X")
    return int(text)
