"""Options that many commands share, and the connection they lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas import __version__

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

Function = TypeVar("Function", bound=Callable[..., Any])


def bootstrap_option(command: Function) -> Function:
    """`-b/--bootstrap`: where the broker is."""
    return click.option(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        default="127.0.0.1:9092",
        envvar="BARNABAS_BOOTSTRAP_SERVERS",
        show_default=True,
        show_envvar=True,
        help="Broker to ask; several with commas.",
    )(command)


def timeout_option(command: Function) -> Function:
    """`--timeout`: how long to go on trying."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=30.0,
        metavar="SECONDS",
        show_default=True,
        help="Give up after this long.",
    )(command)


def output_option(command: Function) -> Function:
    """`-o/--output`: a table for people, JSON for programs."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to print.",
    )(command)


def connect(bootstrap: str, timeout_s: float = 30.0) -> Cluster:
    """A cluster to talk to; nothing is sent yet. A malformed address is a usage error."""
    from barnabas.client.cluster import Cluster

    try:
        return Cluster(bootstrap, software_version=__version__, timeout_s=timeout_s)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-b") from None


def delete_each(
    bootstrap: str, timeout_s: float, kind: str, names: tuple[str, ...], delete: Callable[[Cluster, str], None]
) -> None:
    """Delete each of `names` in turn, and print a line about it; the first failure ends it."""
    with connect(bootstrap, timeout_s) as cluster:
        for name in names:
            delete(cluster, name)
            click.echo(f"deleted {kind} {name}")


def key_values(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a dict; anything else is a usage error."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"wants KEY=VALUE, not {text!r}", param_hint=option)
        found[key.strip()] = value.strip()
    return found
