"""`pytest -p barnabas.testing.testcontainers`: `from testcontainers.kafka import KafkaContainer` gives Barnabas.

For suites that were written for testcontainers and are to stay as they are. Other containers stay those of the library,
if it is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from barnabas.testing.kafka_container import KafkaContainer


def replace() -> None:
    """Make `testcontainers.kafka` a module with this class. Call it before the suite is imported."""
    module = ModuleType("testcontainers.kafka", "Barnabas in place of a container with Kafka.")
    module.KafkaContainer = KafkaContainer  # type: ignore[attr-defined]
    module.RedpandaContainer = KafkaContainer  # type: ignore[attr-defined]
    try:
        import_module("testcontainers")
    except ImportError:
        package = ModuleType("testcontainers")
        package.__path__ = []
        sys.modules["testcontainers"] = package
    sys.modules["testcontainers.kafka"] = module
    sys.modules["testcontainers"].kafka = module  # type: ignore[attr-defined]


replace()
