"""The state of one console, and of one call to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from barnabas.console.clusters import Clusters
from barnabas.console.collector.collector import Collector, Collectors
from barnabas.console.control import Control
from barnabas.console.guard.access import Access
from barnabas.console.guard.sessions import Sessions
from barnabas.console.jobs import Jobs
from barnabas.console.messages.state import MessagesState
from barnabas.console.requests.log import KnownTopics, RequestLogs

if TYPE_CHECKING:
    from barnabas.console.guard.sessions import Session
    from barnabas.console.settings import Settings


class Console:
    """What the requests of one console share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clusters = Clusters(settings)
        self.sessions = Sessions()
        self.access = Access(settings, self.sessions)
        self.messages = MessagesState(settings)
        self.collectors = Collectors()
        self.control = None if settings.control is None else Control(settings.control)
        """The channel of our broker; None for a cluster that has none."""
        self.requests = RequestLogs(self.control, settings.data_dir)
        """The last requests of the brokers that tell them."""
        self.topics = KnownTopics()
        self.sessions.on_end += [self._forget]
        self.jobs = Jobs()

    def start(self) -> None:
        """Start what runs in the background."""

    def _forget(self, session: Session) -> None:
        """A log-in has ended: nothing connects as its user any more."""
        self.collectors.forget(session.key)
        self.clusters.forget(session.key)
        self.messages.processes.end_idle()

    def close(self) -> None:
        """End what runs in the background and close connections."""
        self.collectors.close()
        self.messages.processes.close()
        self.clusters.close()
        self.requests.close()
        if self.control is not None:
            self.control.close()


@dataclass(frozen=True)
class Call:
    """What a resource's function gets as `call`."""

    console: Console
    session: Session
    origin: str
    """The console's address as this request has it, such as http://localhost:8080; the guard has checked its host."""
    is_page: bool = False
    """Whether HTML is answered."""
    is_gone: Event = field(default_factory=Event)
    """Set when the client has closed the connection, for resources that end with it."""

    @property
    def settings(self) -> Settings:
        """The options of the console."""
        return self.console.settings

    @property
    def collector(self) -> Collector:
        """The collector that samples the cluster as this user; it runs."""
        session, clusters = self.session, self.console.clusters
        return self.console.collectors.of(session.key, lambda: clusters.new(session.security))
