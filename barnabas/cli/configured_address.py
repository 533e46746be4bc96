"""The address of a broker that is configured as `serve` is: in the environment, or in a server.properties file."""

from __future__ import annotations

from collections.abc import Mapping

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
