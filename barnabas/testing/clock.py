"""The clock of a cluster: `freeze`, `advance`, `jump`, `resume`. No test waits for a timeout of the broker.

Sessions, rebalances, transactions, share locks, tokens, quotas, retention and compaction go by it, and so do the
timestamps that the broker gives to records (LogAppendTime). Waits within a request are in real time.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.testing.forms import Async, Sync, operation

if TYPE_CHECKING:
    from barnabas.testing.link import Link

# --- durations

Amount: TypeAlias = "float | str | timedelta"

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def seconds_of(amount: Amount) -> float:
    """The seconds of a duration. ValueError if the text is none."""
    if isinstance(amount, timedelta):
        return amount.total_seconds()
    if not isinstance(amount, str):
        return float(amount)
    text = amount.replace(" ", "")
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{amount!r} is no duration; write 500ms, 30s, 5m, 2h, 7d or 1d12h")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


# --- the clock

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

ADVANCE_S = 60.0
"""How long an advance may take, seconds of real time."""


class ClockOperations:
    """Operations on the clock of a cluster. Each returns the date that the cluster has then."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @operation
    def freeze(self) -> datetime:
        """Let time stand still."""
        return self._ask("clock_freeze")

    @operation
    def advance(self, amount: Amount) -> datetime:
        """Let time pass: seconds, a timedelta, or "7d". All that was due has happened when this returns."""
        return self._ask("clock_advance", wait_s=ADVANCE_S, seconds=seconds_of(amount))

    @operation
    def jump(self, when: datetime | str) -> datetime:
        """Set the date, a text as ISO 8601 has it, forward or back; the time between does not pass.

        Without a time zone it is local time.
        """
        when = datetime.fromisoformat(when) if isinstance(when, str) else when
        return self._ask("clock_jump", to_ms=round(when.timestamp() * 1000))

    @operation
    def resume(self) -> datetime:
        """Let time run again, from where it stands."""
        return self._ask("clock_resume")

    @operation
    def read(self) -> datetime:
        """The date."""
        return self._ask("clock")

    def _ask(self, name: str, wait_s: float = 0.0, **values: Any) -> datetime:
        result = self._link.perform(name, values, wait_s)
        return datetime.fromtimestamp(result["now_ms"] / 1000, UTC)


class Clock(ClockOperations, Sync):
    """The clock, for plain tests."""

    @property
    def now(self) -> datetime:
        """The date that the cluster has, in UTC."""
        return self.read()


class AsyncClock(ClockOperations, Async):
    """The clock, for tests in asyncio, trio and anyio."""

    @property
    def now(self) -> Awaitable[datetime]:
        """The date that the cluster has, in UTC."""
        return self.read()
