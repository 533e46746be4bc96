"""A ShareFetch that waits for records (KIP-932; Kafka's `DelayedShareFetch`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.broker.sharing.live_share_partition import LiveSharePartition
    from barnabas.broker.sharing.share_fetch_plan import Answers, ShareFetchPlan
    from barnabas.broker.timers import Timers


class DelayedShareFetch:
    """Tries again when a partition may have records, and for the last time at the deadline."""

    __slots__ = ("_done", "_live", "_plan", "_timer", "_wake")

    def __init__(
        self,
        plan: ShareFetchPlan,
        timers: Timers,
        deadline: float,
        done: Callable[[Answers], None],
        delayed: DelayedResponse,
    ) -> None:
        """`done` gets the answers, at the `deadline` (monotonic seconds) at the latest, to complete `delayed`."""
        self._plan = plan
        self._wake = delayed.guard(self._try_again)
        self._done = done
        self._live: set[LiveSharePartition] = set()
        self._watch()
        self._timer = timers.at(deadline, delayed.guard(lambda: self._try(is_last=True)))

    def _watch(self) -> None:
        """Wait for all partitions of the plan, also for those that were loaded again meanwhile."""
        for live in self._plan.partitions():
            if live not in self._live:
                self._live.add(live)
                live.waiters[self] = self._wake

    def _try_again(self) -> None:
        self._try(is_last=False)

    def _try(self, *, is_last: bool) -> None:
        answers = self._plan.acquire(is_last=is_last)
        if answers is not None:
            self.cancel()
            self._done(answers)
        elif any(live.is_closed for live in self._live):
            self._watch()

    def cancel(self) -> None:
        """Stop waiting."""
        self._timer.cancel()
        for live in self._live:
            live.waiters.pop(self, None)
