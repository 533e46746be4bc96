"""The state of one console, and of one call to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.console.clusters import Clusters
from barnabas.console.collector.collector import Collector, Collectors
from barnabas.console.guard.sessions import Sessions
from barnabas.console.messages.state import MessagesState

if TYPE_CHECKING:
    from barnabas.console.guard.sessions import Session
    from barnabas.console.settings import Settings


class Console:
    """What the requests of one console share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clusters = Clusters(settings)
        self.sessions = Sessions(settings)
        self.messages = MessagesState(settings.schema_files, settings.schema_registry)
        self.collectors = Collectors()

    def start(self) -> None:
        """Start what runs in the background."""

    def close(self) -> None:
        """End what runs in the background and close connections."""
        self.collectors.close()
        self.clusters.close()


@dataclass(frozen=True)
class Call:
    """What a resource's function gets as `call`."""

    console: Console
    session: Session

    @property
    def settings(self) -> Settings:
        """The options of the console."""
        return self.console.settings

    @property
    def collector(self) -> Collector:
        """The collector that samples the cluster as this user; it runs."""
        session, clusters = self.session, self.console.clusters
        return self.console.collectors.of(session.user, lambda: clusters.new(session.security))
