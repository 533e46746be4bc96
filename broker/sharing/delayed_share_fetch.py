"""A ShareFetch that waits: for records (KIP-932; Kafka's `DelayedShareFetch`), or for a thread that reads the disk.

After a thread has read, the attempt is made in any case, even if what was read is out of the page cache again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.broker.sharing.live_share_partition import LiveSharePartition
    from barnabas.broker.sharing.share_fetch_plan import Answers, ShareFetchPlan
    from barnabas.broker.steps import StepRunner, Steps
    from barnabas.broker.timers import Timers


class DelayedShareFetch:
    """Tries again when a partition may have records, and for the last time at the deadline."""

    __slots__ = (
        "_delayed",
        "_done",
        "_is_last",
        "_is_over",
        "_is_reading",
        "_live",
        "_plan",
        "_runner",
        "_timer",
        "_wake",
    )

    def __init__(
        self,
        plan: ShareFetchPlan,
        timers: Timers,
        runner: StepRunner,
        deadline: float,
        done: Callable[[Answers], None],
        delayed: DelayedResponse,
    ) -> None:
        """`done` gets the answers, at the `deadline` (monotonic seconds) at the latest, to complete `delayed`."""
        self._plan = plan
        self._runner = runner
        self._delayed = delayed
        self._wake = delayed.guard(self._try_again)
        self._done = done
        self._is_last = self._is_over = self._is_reading = False
        self._live: set[LiveSharePartition] = set()
        self._watch()
        self._timer = timers.at(deadline, delayed.guard(self._expire))
        self._read_cold()

    def _watch(self) -> None:
        """Wait for all partitions of the plan, also for those that were loaded again meanwhile."""
        for live in self._plan.partitions():
            if live not in self._live:
                self._live.add(live)
                live.waiters[self] = self._wake

    def _expire(self) -> None:
        self._is_last = True
        self._try_again()

    def _try_again(self) -> None:
        if not self._is_reading:
            self._try(may_wait=False)
            self._read_cold()

    def _read_cold(self) -> None:
        """Have a thread read what the last attempt lacked, if anything, then try again."""
        if self._plan.cold:
            self._is_reading = True
            self._runner.start(_read(self._plan.cold), self._delayed.guard(self._was_read))

    def _was_read(self, _: None) -> None:
        self._is_reading = False
        if not self._is_over:
            self._try(may_wait=True)

    def _try(self, *, may_wait: bool) -> None:
        answers = self._plan.acquire(is_last=self._is_last, may_wait=may_wait)
        if answers is not None:
            self.cancel()
            self._done(answers)
        elif any(live.is_closed for live in self._live):
            self._watch()

    def cancel(self) -> None:
        """Stop waiting."""
        self._is_over = True
        self._timer.cancel()
        for live in self._live:
            live.waiters.pop(self, None)


def _read(lookups: Sequence[Callable[[], None]]) -> Steps[None]:
    def read_from_disk() -> None:
        for lookup in lookups:
            lookup()

    try:
        yield read_from_disk
    except Exception:
        return  # it is found again when records are acquired, and reported there
