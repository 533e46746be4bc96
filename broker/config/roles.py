"""Checks `process.roles` with the keys that a role needs; texts are Kafka's (`KafkaConfig.validateValues`).

Without `process.roles` the process is broker and controller for itself and opens no controller listener. With the
role of the controller it opens the listeners of `controller.listener.names`; a broker without it finds the controllers
by `controller.quorum.bootstrap.servers` or `controller.quorum.voters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.config.keys.controller import (
    CONTROLLER_LISTENER_NAMES,
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_VOTERS,
)
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.server_config import ServerConfig


MOST_DIGITS = 10
"""The digits of an int32: Python refuses to read numbers of thousands of digits."""


class Voter(NamedTuple):
    """A voter of `controller.quorum.voters`."""

    id: int
    host: str
    port: int


def parse_voters(items: tuple[str, ...]) -> list[Voter]:
    """Parse `id@host:port` items. ConfigError for an invalid one."""
    voters = []
    for item in items:
        number, at, address = item.strip().partition("@")
        if not (at and number.isdecimal() and len(number) <= MOST_DIGITS and int(number) < 1 << 31):
            raise ConfigError(f"Failed to parse voter ID as an integer from {item.strip()} (controller.quorum.voters)")
        host, port = parse_address(address, item)
        voters.append(Voter(int(number), host, port))
    return voters


def parse_address(text: str, item: str) -> tuple[str, int]:
    """Host and port of `host:port`. ConfigError, with `item`, for anything else."""
    host, colon, port = text.strip().rpartition(":")
    if not (host and colon and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise ConfigError(f"Failed to parse host and port from {item.strip()}: it must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_roles(config: ServerConfig, endpoints: list[Endpoint]) -> None:
    """Raise ConfigError if a process with these roles cannot start; `endpoints` are all of `listeners`."""
    voters = parse_voters(config[CONTROLLER_QUORUM_VOTERS])
    for server in config[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]:
        parse_address(server, f"{server} (controller.quorum.bootstrap.servers)")
    names = {name.upper() for name in config[CONTROLLER_LISTENER_NAMES]}
    opened = {endpoint.name for endpoint in endpoints}
    if config.roles == {"broker"}:
        _check_broker(config, names, opened)
    elif config.roles == {"controller"}:
        _check_controller(config, names, opened)
    if "controller" in config.roles:
        _check_voters(config, voters)
    if "broker" in config.roles and not config.listeners:
        raise ConfigError("listeners must have at least one listener for clients")


def _check_broker(config: ServerConfig, names: set[str], opened: set[str]) -> None:
    _check_is_set(config)
    if not (config[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS] or config[CONTROLLER_QUORUM_VOTERS]):
        raise ConfigError(
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
            "controllers or controller.quorum.voters must contain a parseable set of controllers."
        )
    if names & opened:
        raise ConfigError(
            "controller.listener.names must not contain a value appearing in the 'listeners' configuration when "
            "running KRaft with just the broker role"
        )


def _check_controller(config: ServerConfig, names: set[str], opened: set[str]) -> None:
    _check_is_set(config)
    if not opened <= names:
        raise ConfigError(
            "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
            "process.roles=controller"
        )
    if not names <= opened:
        raise ConfigError(
            "controller.listener.names must only contain values appearing in the 'listeners' configuration when "
            "running the KRaft controller role"
        )


def _check_is_set(config: ServerConfig) -> None:
    if not config.static.get(CONTROLLER_LISTENER_NAMES.name, "").strip():
        raise ConfigError("controller.listener.names must contain at least one value")


def _check_voters(config: ServerConfig, voters: list[Voter]) -> None:
    ids = {voter.id for voter in voters}
    if ids and config.node_id not in ids:
        listed = ", ".join(map(str, sorted(ids)))
        raise ConfigError(
            f"If process.roles contains the 'controller' role, the node id {config.node_id} must be included in the "
            f"set of voters controller.quorum.voters=[{listed}]"
        )
    if len(ids) > 1:
        raise ConfigError(
            "controller.quorum.voters has several nodes, but the controller of Barnabas is a quorum of one: "
            "use Apache Kafka's controllers for more"
        )
