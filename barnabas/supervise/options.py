"""The options of `barnabas serve --brokers N`. A plain module, without imports of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OURS, KAFKA = "ours", "kafka"
MAX_BROKERS = 99
"""More on one machine is a mistake of the command line."""


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
