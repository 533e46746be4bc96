"""The address of a broker that is configured as `serve` is: in the environment, or in a server.properties file."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click
from click.core import ParameterSource

from barnabas.cli.connect.settings import setting_with_source

_WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def configured_address(environment: Mapping[str, str], file: str | None) -> str | None:
    """HOST:PORT of the first listener with a fixed port, as this machine reaches it; None if none is configured.

    Raises ConfigError for a configuration with which `serve` would not start.
    """
    if file is None and not environment.get("KAFKA_LISTENERS"):
        return None
    from barnabas.broker.config.load import load

    for listener in load({}, environment, file).listeners:
        if listener.port:
            host = _WILDCARDS.get(listener.host, listener.host)
            return f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"
    return None


def broker_address(context: click.Context, bootstrap: str, file: str | None = None) -> str:
    """The address that `-b` gives, else that of `file`, of a profile or of KAFKA_LISTENERS, else the default.

    A configuration with which `serve` would not start is a usage error.
    """
    from barnabas.wire.configdef import ConfigError

    is_default = context.get_parameter_source("bootstrap") is ParameterSource.DEFAULT
    if not is_default or (file is None and setting_with_source("bootstrap")[1] != "default"):
        return bootstrap
    try:
        return configured_address(os.environ, file) or bootstrap
    except ConfigError as error:
        raise click.UsageError(f"the configuration names no address: {error}") from None
