"""A follower's Fetch that waits for records: answered in the turn of the append, since acks=all waits for it.

What waits in a session is told of the session's partitions by its watch; all that was appended in a turn is read
together. A fetch without a session waits as a consumer's does, for the log end instead of the high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.delayed_fetch import DelayedFetch
from barnabas.broker.apis.follower_fetch import FollowerSessionPlan
from barnabas.broker.net.delayed_response import DelayedResponse

if TYPE_CHECKING:
    from barnabas.broker.apis.fetch_plan import Attempt, FetchPlan


def delayed_follower_fetch(plan: FetchPlan, attempt: Attempt, deadline: float) -> DelayedResponse:
    """Wait for more than `attempt` has read, until the deadline."""
    if isinstance(plan, FollowerSessionPlan):
        return DelayedFollowerFetch(plan, deadline).delayed
    return DelayedFetch(plan, attempt, plan.broker.loop.timers, deadline).delayed


class DelayedFollowerFetch:
    """Reads what has changed, at the end of the turn in which it has, and for the last time at the deadline."""

    __slots__ = ("_is_scheduled", "_loop", "_plan", "_timer", "_woken", "delayed")

    def __init__(self, plan: FollowerSessionPlan, deadline: float) -> None:
        self.delayed = DelayedResponse(on_cancel=self._stop)
        self._plan = plan
        self._loop = plan.broker.loop
        self._is_scheduled = False
        self._timer = self._loop.timers.at(deadline, self.delayed.guard(self._expire))
        self._woken = self.delayed.guard(self._read)
        plan.watch.on_woken = self._changed

    def _changed(self) -> None:
        """A partition has changed; others may in the same turn."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_after_turn(self._woken)

    def _read(self) -> None:
        self._is_scheduled = False
        if self.delayed.is_done:
            return
        attempt = self._plan.read_changed()
        if attempt.is_final or attempt.size >= self._plan.min_bytes:
            self._finish(attempt)

    def _expire(self) -> None:
        self._finish(self._plan.read_changed())

    def _finish(self, attempt: Attempt) -> None:
        self._stop()
        self.delayed.resolve(self._plan.respond(attempt))

    def _stop(self) -> None:
        self._timer.cancel()
        if self._plan.watch.on_woken == self._changed:
            self._plan.watch.on_woken = None
