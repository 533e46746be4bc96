"""What all coordinators have in common: their interface for the broker, deadlines, and the errors of a failed append.

Source: Kafka 4.4 `TransactionStateManager`, `GroupCoordinatorService`, `ShareCoordinatorService`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from barnabas.coord.machine import Result
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coord.machine import Moment

APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""By error of the append: the error that the client gets; the coordinators differ in the errors that are not here."""


class Coordinator:
    """A coordinator of one partition, see `coord.machine`."""

    append_errors: ClassVar[Mapping[ErrorCode, ErrorCode]] = APPEND_ERRORS
    """By error of the append: the error that the client gets; any other error is returned unchanged."""

    result_class: ClassVar[type[Result]] = Result

    def __init__(self) -> None:
        self._timers = self.timers = Timers()
        """The deadlines; for the runtime `timers`."""

    def loaded(self, at: Moment) -> Result:
        """The whole log has been replayed."""
        raise NotImplementedError

    def unload(self, at: Moment) -> Result:
        """The partition has another coordinator now: drop all state, without a record."""
        raise NotImplementedError

    def append_failed(self, result: Result, error: ErrorCode, at: Moment) -> Result:
        """The result to apply instead of `result`, whose records could not be appended."""
        return result.failed(self.append_errors.get(error, error), at)

    def commit_failed(self, result: Result, error: ErrorCode) -> Result:
        """The replies to send for `result`, whose records are appended and replayed but will not become durable.

        Nothing is undone, since the caller unloads the coordinator.
        """
        return result.failed_replies(self.append_errors.get(error, error))

    def next_deadline(self) -> float | None:
        """The next time `tick` has something to do (monotonic seconds), or None."""
        return self._timers.next_deadline()

    def tick(self, at: Moment) -> Result:
        """Handle the deadlines up to `at`, in order; call it again while `next_deadline` is not in the future.

        It stops after an event with records, since these have to be replayed before the next event, or with replies,
        so that they are not lost if the next event fails. An event that fails, or whose records cannot be appended, is
        handled again later.
        """
        return self._timers.run_due(at, self.result_class(), self._due)

    def _due(self, key: Hashable, at: Moment, result: Any) -> None:
        """A deadline has come; `result` is of `result_class`."""
        raise NotImplementedError
