"""`pytest -p barnabas.testing.testcontainers`: `from testcontainers.kafka import KafkaContainer` gives Barnabas.

For suites that were written for testcontainers and are to stay as they are. Other containers come from the library,
if it is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from barnabas.testing.kafka_container import KafkaContainer

PACKAGES = ("testcontainers", "testcontainers.community")
"""Where the library has its module for Kafka; the second one is the newer place."""


def replace() -> None:
    """Make `testcontainers.kafka` a module with this class. Call it before the suite is imported."""
    for package in PACKAGES:
        module = ModuleType(f"{package}.kafka", "Barnabas in place of a container with Kafka.")
        module.KafkaContainer = KafkaContainer  # type: ignore[attr-defined]
        module.RedpandaContainer = KafkaContainer  # type: ignore[attr-defined]
        try:
            import_module(package)
        except ImportError:
            missing = ModuleType(package)
            missing.__path__ = []
            sys.modules[package] = missing
        sys.modules[module.__name__] = module
        sys.modules[package].kafka = module  # type: ignore[attr-defined]


replace()
