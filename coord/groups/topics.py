"""The cluster's topics as groups see them: read-only, always as of now.

`broker.coordinators.groups` implements it over the cluster's image; tests over a dictionary. A coordinator is
told of changes by `GroupCoordinator.metadata_changed`.
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
    """How many it has; they are numbered from 0."""
    racks: tuple[frozenset[str], ...] = ()
    """For each partition the racks of its replicas; () when no broker tells its rack."""


class Topics(Protocol):
    """All topics there are."""

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
