"""The test kit: a broker in a test, isolation, assertions that read the log, faults, a clock under control.

`with Broker() as kafka:` in any test; in pytest the fixture `kafka` (`barnabas.testing.plugin`). Importing it needs the
standard library only, and no module of it is imported before its first use; the broker is a process of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.testing.access import Access
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import AsyncCluster, Cluster
    from barnabas.testing.errors import BrokerError, RefusedError, SeedError
    from barnabas.testing.finding import BarnabasLintWarning, Finding
    from barnabas.testing.group import AsyncGroup, Group, GroupState, Member
    from barnabas.testing.kafka_container import KafkaContainer
    from barnabas.testing.records import Record
    from barnabas.testing.topic import AsyncTopic, Topic

__all__ = [
    "Access",
    "AsyncCluster",
    "AsyncGroup",
    "AsyncTopic",
    "BarnabasLintWarning",
    "Broker",
    "BrokerError",
    "Cluster",
    "Finding",
    "Group",
    "GroupState",
    "KafkaContainer",
    "Member",
    "Record",
    "RefusedError",
    "SeedError",
    "Topic",
]
_MODULES = {
    "access": ["Access"],
    "broker": ["Broker"],
    "cluster": ["AsyncCluster", "Cluster"],
    "errors": ["BrokerError", "RefusedError", "SeedError"],
    "finding": ["BarnabasLintWarning", "Finding"],
    "group": ["AsyncGroup", "Group", "GroupState", "Member"],
    "kafka_container": ["KafkaContainer"],
    "records": ["Record"],
    "topic": ["AsyncTopic", "Topic"],
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"barnabas.testing.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
