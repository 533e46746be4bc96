"""The options of `barnabas serve --brokers N`. A plain module, without imports of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.config.options import Companion as BrokerCompanion

OURS, KAFKA = "ours", "kafka"
MAX_BROKERS = 99
"""More on one machine is a mistake of the command line."""


class Companion(Protocol):
    """A process that is started beside a cluster when it serves, and ends with it (`--console`)."""

    also_ready: str
    """What is written to stdout below the ready line."""

    def start(self, bootstrap: str, data_dir: str) -> None:
        """Start the process, for the cluster at these addresses."""

    def of_broker(self, file: str) -> BrokerCompanion:
        """What serves within a broker for this process, and writes to `file` how it is reached."""

    def descriptors(self) -> list[int]:
        """The descriptors that no node may inherit."""

    def fileno(self) -> int:
        """The descriptor that becomes readable when the process ends."""

    def sentence_of_end(self) -> str:
        """That the process has ended, with how."""

    def end(self) -> None:
        """End the process and wait for its end."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options of a cluster on the command line."""

    brokers: int
    """How many brokers, with the ids from 1."""
    host: str = "127.0.0.1"
    """As in a listener: without brackets, empty for every interface."""
    port: int = 9092
    """Of the first broker; the others follow on the next ones. 0: free ones."""
    data_dir: str | None = None
    """The directory of the cluster, with one for each node; None: a temporary one."""
    sets: Mapping[str, str] = field(default_factory=dict)
    """Config keys for all nodes."""
    node_sets: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Config keys for one node, by its id."""
    config_file: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: str = "dev"
    ready_file: str | None = None
    log_level: str | None = None
    restarts: bool = False
    """Whether a node that dies is started again."""
    controllers: str = OURS
    """`ours`: one controller of Barnabas; `kafka`: three of Apache Kafka's."""
    companion: Companion | None = None
