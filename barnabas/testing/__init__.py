"""The test kit: a broker in a test, isolation, assertions that read the log, faults, a clock under control.

`with Broker() as kafka:` in any test; in pytest the fixture `kafka` (`barnabas.testing.plugin`). Importing it needs the
standard library only; the broker is a process of its own.
"""

from __future__ import annotations

from barnabas.testing.broker import Broker
from barnabas.testing.cluster import AsyncCluster, Cluster
from barnabas.testing.errors import BrokerError, RefusedError
from barnabas.testing.records import Record
from barnabas.testing.topic import AsyncTopic, Topic

__all__ = ["AsyncCluster", "AsyncTopic", "Broker", "BrokerError", "Cluster", "Record", "RefusedError", "Topic"]
