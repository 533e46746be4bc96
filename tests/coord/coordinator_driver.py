"""Acts as the broker of a coordinator: one clock, one log, responses by ticket."""

from __future__ import annotations

from itertools import count

from barnabas.coord.machine import Moment

START_MS = 1_700_000_000_000


class CoordinatorDriver:
    """Handles every Result as the broker does: append, replay, reply. Subclasses set `coordinator`."""

    def __init__(self):
        self.tickets = count(1)
        self.now = 0.0
        self.answers = {}
        self.append_error = None

    @property
    def at(self):
        return Moment(self.now, START_MS + int(self.now * 1000))

    def append(self, key, value):
        """Append a record to the log and replay it."""
        raise NotImplementedError

    def handle(self, result):
        """Append, replay and reply; the result that was applied."""
        if result.records and self.append_error is not None:
            result = self.coordinator.append_failed(result, self.append_error, self.at)
            assert not result.records
        for key, value in result.records:
            self.append(key, value)
        for reply in result.replies:
            assert reply.ticket not in self.answers, "answered twice"
            self.answers[reply.ticket] = reply.made()
        return result

    def advance(self, seconds):
        """Advance time, with a tick at every deadline."""
        end = self.now + seconds
        while (deadline := self.coordinator.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.handle(self.coordinator.tick(self.at))
        self.now = end
