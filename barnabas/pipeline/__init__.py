"""Spark jobs that run against a broker, and functions for notebooks.

    from barnabas.pipeline import read_topic, write_topic

Names are imported on first use, so that this package can be imported without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.spark.notebook import read_topic as read_topic
    from barnabas.spark.notebook import write_topic as write_topic
    from barnabas.spark.session.spark import session as session
    from barnabas.spark.topics.kafka import deduplicated as deduplicated

_WHERE = {
    "read_topic": "barnabas.spark.notebook",
    "write_topic": "barnabas.spark.notebook",
    "deduplicated": "barnabas.spark.topics.kafka",
    "session": "barnabas.spark.session.spark",
}
__all__ = ["deduplicated", "read_topic", "session", "write_topic"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_WHERE[name]), name)
    except ModuleNotFoundError as error:
        from barnabas.spark.errors import INSTALL

        raise ImportError(f"barnabas.pipeline needs {error.name}: {INSTALL}") from error
