"""Options shared by several commands, and connecting to a broker."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from barnabas import __version__
from barnabas.cli.connect.client_config import is_security_key
from barnabas.cli.connect.security import override_security, security
from barnabas.cli.connect.settings import PROFILE_VARIABLE, apply_colour, override, setting
from barnabas.cli.options.patterns import Function as Function
from barnabas.cli.options.patterns import regex_option
from barnabas.terminal.tables import OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.client.cluster import Cluster


def bootstrap_option(command: Function) -> Function:
    """`-b/--bootstrap`: the broker's address; with it `-X KEY=VALUE`, `--command-config` and `--profile NAME`."""
    return settings_options(address_option(command))


def address_option(command: Function) -> Function:
    """`-b/--bootstrap` alone."""
    return click.option(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        envvar="BARNABAS_BOOTSTRAP_SERVERS",
        default=lambda: setting("bootstrap"),
        callback=_with_colour,
        help="Broker address; several separated by commas. "
        "[env var: BARNABAS_BOOTSTRAP_SERVERS; default: 127.0.0.1:9092]",
    )(command)


def settings_options(command: Function) -> Function:
    """`-X`, `--command-config` and `--profile`: settings that apply before and after a command's name."""
    command = click.option(
        "-X",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        is_eager=True,
        expose_value=False,
        callback=_override,
        help="Set bootstrap (or brokers), timeout, output, colour, or a key of TLS and SASL; may be repeated.",
    )(command)
    command = click.option(
        "--command-config",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_use_command_config,
        help="Take TLS and SASL from a client.properties of Kafka's. [env var: BARNABAS_COMMAND_CONFIG]",
    )(command)
    return click.option(
        "--profile",
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=_use_profile,
        help="Take settings from this profile. [env var: BARNABAS_PROFILE]",
    )(command)


def _override(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:  # noqa: ARG001
    for key, text in key_values(value, "-X").items():
        if is_security_key(key):
            override_security(ctx, key, text)
        else:
            override(key, text)


def _use_command_config(ctx: click.Context, param: click.Parameter, value: str | None) -> None:  # noqa: ARG001
    if value is not None:
        override("command-config", value)


def _use_profile(ctx: click.Context, param: click.Parameter, value: str | None) -> None:  # noqa: ARG001
    if value is not None:
        os.environ[PROFILE_VARIABLE] = value


def _with_colour(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    if not ctx.resilient_parsing:
        apply_colour()
    return value


def timeout_option(command: Function) -> Function:
    """`--timeout`: how long to retry."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=lambda: setting("timeout"),
        metavar="SECONDS",
        help="Fail after this time. [env var: BARNABAS_TIMEOUT; default: 30]",
    )(command)


def own_timeout_option(default_s: float, text: str) -> Callable[[Function], Function]:
    """`--timeout` of a command with a default of its own, in seconds; `text` is its help."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=default_s,
        metavar="SECONDS",
        show_default=True,
        help=text,
    )


def output_option(command: Function) -> Function:
    """`-o/--output`: table, wide, json or yaml; for `barnabas.terminal.tables`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(OUTPUTS),
        default=lambda: setting("output"),
        callback=_with_colour,
        help="Output format; wide is a table with all columns. [env var: BARNABAS_OUTPUT; default: table]",
    )(command)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-b` and `--timeout`: the command gets the cluster as `cluster`, which is closed when it returns."""

    @wraps(command)
    def connected(*, bootstrap: str, timeout_s: float, **values: object) -> Any:
        with connect(bootstrap, timeout_s) as cluster:
            return command(cluster=cluster, **values)

    return bootstrap_option(timeout_option(connected))


def listing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-r`, `-o` and the cluster's: of a command that shows what names or patterns select."""
    return regex_option(cluster_options(output_option(command)))


def isolation_option(command: Function) -> Function:
    """`--isolation`: whether records of open and aborted transactions are read."""
    return click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed: no records of aborted and of open transactions.",
    )(command)


def yes_option(command: Function) -> Function:
    """`-y/--yes` of a command that asks first: see `barnabas.cli.options.patterns.ask_or_refuse`."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")(command)


def connect(bootstrap: str, timeout_s: float = 30.0, properties: Mapping[str, str] | None = None) -> Cluster:
    """A client for the cluster; sends nothing yet. A malformed address is a usage error.

    `properties` are keys of TLS and SASL that the command's own options give.
    """
    from barnabas.cli.connect.command_cluster import CommandCluster

    secured = security(properties)
    try:
        return CommandCluster(bootstrap, software_version=__version__, timeout_s=timeout_s, security=secured)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-b") from None


def key_values(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a dict; anything else is a usage error."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"must be KEY=VALUE, not {text!r}", param_hint=option)
        values[key.strip()] = value.strip()
    return values
