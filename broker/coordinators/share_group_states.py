"""Between the coordinators of share groups and the share coordinators: begins and deletes the state of partitions.

A share group's event may have a task (`coord.groups.share.tasks`), which begins when its records are committed. What
becomes of it goes back as another event, to whoever coordinates the group by then; on one node both coordinators are in
this process. Heartbeats of a group that has a task wait for its end, so that they are told of all partitions at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators.runtime import release_replies
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.share.tasks import ShareGroupResult
    from barnabas.coord.machine import Result
    from barnabas.wire.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
    from barnabas.wire.types import Uuid

    Answer = Callable[[ShareGroupHeartbeatResponse], None]
    Failures = dict[Uuid, dict[int, ErrorCode]]


class ShareGroupStates:
    """The tasks of all share groups of this broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        """By group that has a task: what is to be done when it is over."""

    def heartbeat(self, request: ShareGroupHeartbeatRequest, client: ClientContext, answer: Answer) -> None:
        """ShareGroupHeartbeat, after what the group waits for. KafkaError NOT_COORDINATOR when nobody can handle it."""
        waiting = self._waiting.get(request.group_id)
        if waiting is not None:
            waiting.append(lambda: self._resume(request, client, answer))
            return
        self._broker.coordinators.handle(
            request.group_id, lambda groups, at: groups.share_groups.heartbeat(request, answer, client, at)
        )

    def _resume(self, request: ShareGroupHeartbeatRequest, client: ClientContext, answer: Answer) -> None:
        from barnabas.coord.groups.share.share_groups import heartbeat_error

        try:
            self.heartbeat(request, client, answer)
        except KafkaError as error:
            answer(heartbeat_error(error.code, error.message))

    def follow(self, result: Result) -> None:
        """The records of a group's event are committed: begin what it asks for."""
        if getattr(result, "task", None) is not None:
            self._begin(result)  # type: ignore[arg-type]  # no other result has tasks
        resumed: Any = getattr(result, "resumed", None)
        if resumed is not None:
            self._resume(resumed.request, resumed.context, resumed.ticket)

    def _begin(self, result: ShareGroupResult) -> None:
        """Ask the share coordinators about each partition; when all answers are there the event goes on."""
        task = result.task
        assert task is not None
        group_id = task.group_id
        waiting = self._waiting.get(group_id)
        if waiting is not None:  # one task at a time: what it is about may depend on the one before
            waiting.append(lambda: self._begin(result))
            return
        self._waiting[group_id] = deque()
        failures: Failures = {}
        missing = sum(map(len, task.partitions.values()))

        def answered(topic_id: Uuid, partition: int, error_code: int) -> None:
            nonlocal missing
            if error_code:
                failures.setdefault(topic_id, {})[partition] = ErrorCode(error_code)
            missing -= 1
            if not missing:
                self._end(result, group_id, failures)

        for topic_id, partitions in task.partitions.items():
            for partition in partitions:
                self._ask(result, SharePartitionKey(group_id, topic_id, partition), answered)

    def _ask(
        self, result: ShareGroupResult, about: SharePartitionKey, answered: Callable[[Uuid, int, int], None]
    ) -> None:
        from barnabas.coord.groups.share.tasks import InitializeStates
        from barnabas.wire.messages.share_state import InitializeShareGroupStateRequestPartitionData

        def answer(outcome: Any) -> None:
            answered(about.topic_id, about.partition, outcome.error_code)

        task = result.task
        if isinstance(task, InitializeStates):
            asked = InitializeShareGroupStateRequestPartitionData(
                partition=about.partition,
                state_epoch=task.state_epoch,
                start_offset=task.partitions[about.topic_id][about.partition],
            )
            self._broker.shares.ask_initialize(about, asked, answer)
        else:
            self._broker.shares.ask_delete(about, answer)

    def _end(self, result: ShareGroupResult, group_id: str, failures: Failures) -> None:
        """All answers are there: tell the group's coordinator, then go on with what has waited."""
        then = result.then
        assert then is not None
        waiting = self._waiting.pop(group_id)
        try:
            self._broker.coordinators.handle(group_id, lambda groups, at: then(groups.share_groups, failures, at))
        except KafkaError as error:
            release_replies(result.failed_replies(error.code))
        while waiting:
            deed = waiting.popleft()
            deed()
