"""Announces that the broker accepts connections: the ready file, Kafka's ready line, and examples for clients."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.options import Secured

logger = logging.getLogger("kafka.server.KafkaServer")

_WILDCARDS = ("", "0.0.0.0", "::")


class Entrance(NamedTuple):
    """One listener as its clients see it."""

    clients: str
    """Which clients can use the address."""
    dial: str
    """The address that these clients connect to, HOST:PORT."""
    local: str
    """An address of the listener that works on this machine."""
    is_local: bool
    """Whether the advertised address is the one of this machine: in a container, of its host."""
    protocol: str = "PLAINTEXT"
    """The security protocol of the listener."""


def remove_ready_file(path: str) -> None:
    """Remove the ready file of an earlier broker. ConfigError when the file could not be written later."""
    file = Path(path)
    try:
        if file.is_dir() or not os.access(file.parent, os.W_OK):
            raise ConfigError(f"Cannot write the ready file {path}")
        file.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"Cannot write the ready file {path}: {error.strerror}") from error


def announce(
    node_id: int,
    addresses: Sequence[Endpoint],
    advertised: Mapping[str, Endpoint],
    ready_file: str | None,
    *,
    in_container: bool = False,
    protocols: Mapping[str, str] | None = None,
    secured: Secured | None = None,
    also_ready: str = "",
) -> None:
    """Write the ready file, then the ready line and client examples for each listener to stdout.

    `protocols` has the security protocols of the listeners, `secured` has the examples of `--secure`, `also_ready` is
    what else is ready, and stands between the ready line and the examples. The ready line
    is logged first, since a process that waits for it may read the log; not if stdout and stderr are the same file,
    such as one terminal. ConfigError if a file cannot be written.
    """
    bound = ",".join(str(address) for address in addresses)
    ways = entrances(addresses, advertised, in_container=in_container, protocols=protocols)
    examples = [secured.tell(way.clients, way.dial) if secured else _client_configuration(way) for way in ways]
    _write_ready_file(ready_file, ways[0].local)
    if not _is_same_file():
        logger.info("[KafkaServer id=%d] started on %s", node_id, bound)
    sys.stdout.write(
        f"[{_now()}] INFO [KafkaServer id={node_id}] started on {bound} (Kafka Server started; "
        "Transitioning from RECOVERY to RUNNING; Started Kafka API server) (kafka.server.KafkaServer)\n"
        + also_ready
        + "".join(examples)
    )
    sys.stdout.flush()


def announce_controller(node_id: int, addresses: Sequence[Endpoint], ready_file: str | None) -> None:
    """As `announce`, for a process that is only a controller, which clients do not use."""
    bound = ",".join(str(address) for address in addresses)
    local = "127.0.0.1" if addresses[0].host in _WILDCARDS else addresses[0].host
    _write_ready_file(ready_file, _address(local, addresses[0].port))
    if not _is_same_file():
        logger.info("[ControllerServer id=%d] started on %s", node_id, bound)
    sys.stdout.write(
        f"[{_now()}] INFO [ControllerServer id={node_id}] started on {bound} (Kafka Server started) "
        "(kafka.server.ControllerServer)\n"
    )
    sys.stdout.flush()


def _client_configuration(way: Entrance) -> str:
    text = CLIENT_CONFIGURATION if way.protocol == "PLAINTEXT" else SECURED_CONFIGURATION
    return text.format(**way._asdict())


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S") + f",{time.time_ns() // 1_000_000 % 1000:03d}"


def _write_ready_file(path: str | None, address: str) -> None:
    """Write an address; before the ready line, since a process that waits for the line may read the file."""
    if path is None:
        return
    temporary = Path(f"{path}.{os.getpid()}")
    try:
        temporary.write_text(f"{address}\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise ConfigError(f"Cannot write the ready file {path}: {error.strerror}") from error


def entrances(
    addresses: Sequence[Endpoint],
    advertised: Mapping[str, Endpoint],
    *,
    in_container: bool,
    protocols: Mapping[str, str] | None = None,
) -> list[Entrance]:
    """The listeners as their clients see them; the ones for clients on this machine, or a container's host, first."""
    ways = [
        _entrance(address, advertised.get(address.name), in_container=in_container)._replace(
            protocol=(protocols or {}).get(address.name, "PLAINTEXT")
        )
        for address in addresses
    ]
    return sorted(ways, key=lambda way: not way.is_local)


def _entrance(bound: Endpoint, advertised: Endpoint | None, *, in_container: bool) -> Entrance:
    is_wildcard = bound.host in _WILDCARDS
    local = _address("127.0.0.1" if is_wildcard else bound.host, bound.port)
    if advertised is None or not advertised.host:
        if not is_wildcard:
            is_local = _is_loopback(bound.host)
            clients = _ON_THIS_MACHINE if is_local else f"Clients that reach {bound.host}"
            return Entrance(f"{clients} ({bound.name})", local, local, is_local)
        if in_container:
            return Entrance(
                f"Other containers of the same network, by the name of this one ({bound.name})",
                _address(_hostname(), bound.port),
                local,
                is_local=False,
            )
        clients = f"{_ON_THIS_MACHINE}; on others with this machine's name instead of 127.0.0.1"
        return Entrance(f"{clients} ({bound.name})", local, local, is_local=True)
    dial = _address(advertised.host, advertised.port)
    is_local = _is_loopback(advertised.host)
    if is_local and in_container:
        clients = f"Clients on the host of this container, with -p {advertised.port}:{bound.port}"
    elif is_local:
        clients = _ON_THIS_MACHINE
    elif in_container and "." not in advertised.host and ":" not in advertised.host:
        clients = f"Other containers of the same network, where {advertised.host} is the name of this one"
    else:
        clients = f"Clients that reach {advertised.host}"
    return Entrance(f"{clients} ({bound.name})", dial, local, is_local)


def _is_loopback(host: str) -> bool:
    return host.lower() in ("localhost", "::1") or host.startswith("127.")


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _hostname() -> str:
    return os.uname().nodename


def _is_same_file() -> bool:
    """Whether stdout and stderr are one file, where the ready line would stand twice."""
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno()))
    except (OSError, ValueError):  # closed, or replaced by an object without a descriptor
        return False


_ON_THIS_MACHINE = "Clients on this machine"
SECURED_CONFIGURATION = """
{clients}: {dial}, with security.protocol={protocol}
"""
CLIENT_CONFIGURATION = """
{clients}: {dial}

confluent-kafka
  Producer({{"bootstrap.servers": "{dial}"}})
  Consumer({{"bootstrap.servers": "{dial}",
            "group.id": "my-group",
            "auto.offset.reset": "earliest"}})
kafka-python
  KafkaProducer(bootstrap_servers="{dial}")
  KafkaConsumer("my-topic",
                bootstrap_servers="{dial}",
                auto_offset_reset="earliest")
Spark
  (spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "{dial}")
    .option("subscribe", "my-topic").load())
"""
