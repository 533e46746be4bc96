"""Log directories that work, but take no records for now: their disk is full, or no descriptor is left.

Other brokers lead the replicas of such a directory meanwhile (R28). A full disk counts from the first refusal on,
missing descriptors only if they are still missing at the next check, because log files are closed to get some. The
directory takes records again after `PAUSE_S` at the earliest; the pause is doubled if the directory was exhausted again
soon after the last one: else a disk that is nearly full would lose and get back its leaderships every second.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.storage.directories.log_dir import LogDir

logger = logging.getLogger("kafka.log.LogManager")

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
RECOVERED_BYTES: Final = 1 << 20
"""Free bytes from which on a full directory counts as having space again."""
PAUSE_S: Final = 5.0
MAX_PAUSE_S: Final = 60.0
SOON_S: Final = 300.0
"""A directory that was exhausted so recently waits longer the next time."""


class _Exhausted:
    """One directory's state."""

    __slots__ = ("code", "ended_at", "is_over", "not_before", "pause_s")

    def __init__(self) -> None:
        self.code = 0
        self.pause_s = 0.0
        self.not_before = 0.0
        self.ended_at = 0.0
        self.is_over = True


class ExhaustedDirs:
    """Which directories take no records now."""

    def __init__(self, loop: Loop, has_descriptors: Callable[[], bool]) -> None:
        self._loop = loop
        self._has_descriptors = has_descriptors
        self._states: dict[LogDir, _Exhausted] = {}
        self._refused: dict[LogDir, int] = {}  # descriptors, since the last check
        self.on_change: list[Callable[[LogDir], None]] = []
        """Called at the end of the turn with a directory that takes no records any longer, or takes them again."""

    def __contains__(self, log_dir: LogDir | None) -> bool:
        state = None if log_dir is None else self._states.get(log_dir)
        return state is not None and not state.is_over

    def refused(self, log_dir: LogDir, code: int) -> None:
        """An operation in a directory has failed with this error number."""
        if code in NO_SPACE:
            self._begin(log_dir, code)
        elif code in NO_DESCRIPTORS:
            self._refused[log_dir] = code

    def check(self) -> None:
        """Update which directories are exhausted. To be called every second; the caller handles OSError."""
        refused, self._refused = self._refused, {}
        if refused and not self._has_descriptors():
            for log_dir, code in refused.items():
                self._begin(log_dir, code)
        now = self._loop.now()
        for log_dir, state in self._states.items():
            if not state.is_over and log_dir.failure is None and now >= state.not_before and self._has_room(log_dir):
                state.is_over = True
                state.ended_at = now
                self._changed(log_dir)

    def _has_room(self, log_dir: LogDir) -> bool:
        if self._states[log_dir].code in NO_DESCRIPTORS:
            return self._has_descriptors()
        try:
            return log_dir.volume()[1] >= RECOVERED_BYTES
        except OSError:
            return False  # whether the directory is still there is checked elsewhere

    def _begin(self, log_dir: LogDir, code: int) -> None:
        state = self._states.setdefault(log_dir, _Exhausted())
        if not state.is_over:
            return
        now = self._loop.now()
        is_again = state.pause_s > 0 and now - state.ended_at < SOON_S
        state.pause_s = min(2 * state.pause_s, MAX_PAUSE_S) if is_again else PAUSE_S
        state.code, state.not_before, state.is_over = code, now + state.pause_s, False
        self._changed(log_dir)

    def _changed(self, log_dir: LogDir) -> None:
        for follower in self.on_change:
            self._loop.call_after_turn(lambda follower=follower: follower(log_dir))  # type: ignore[misc]
