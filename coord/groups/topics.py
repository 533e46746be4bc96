"""The interface by which group coordinators look up the cluster's topics.

`broker.coordinators.groups` implements it with the metadata image, tests with a dictionary. Changes are reported to a
coordinator by `GroupCoordinator.metadata_changed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from barnabas.wire.types import Uuid


class Topic(NamedTuple):
    """One topic."""

    topic_id: Uuid
    name: str
    partitions: int
    """Number of partitions."""
    racks: tuple[frozenset[str], ...] = ()
    """By partition the racks of its replicas; () when no broker has a rack."""


class Topics(Protocol):
    """All topics of the cluster."""

    def by_name(self, name: str, /) -> Topic | None:
        """The topic of this name, if it exists."""

    def by_id(self, topic_id: Uuid, /) -> Topic | None:
        """The topic of this id, if it exists."""

    def names(self) -> Iterable[str]:
        """The names of all topics, internal ones included."""


class NoTopics:
    """A cluster without topics."""

    def by_name(self, name: str, /) -> Topic | None:  # noqa: ARG002 - there is nothing to look up
        """None."""
        return None

    def by_id(self, topic_id: Uuid, /) -> Topic | None:  # noqa: ARG002
        """None."""
        return None

    def names(self) -> Iterable[str]:
        """Nothing."""
        return ()
