"""Carries out the tasks of share groups at the share coordinator: initialize and delete the state of partitions.

An event of a share group may have a task (`coord.groups.share.tasks`), which starts when its records are committed.
The outcome goes back to the group's coordinator as another event. Heartbeats of a group wait until its task is over, so
that the answer has all partitions at once (KIP-932).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.broker.coordinators.shard import release_replies
from barnabas.broker.event_loop.guarded import answer_for, call_guarded
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.coordinators.loading import Event
    from barnabas.broker.coordinators.share_states import ShareStates
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.groups.share.result import ShareGroupResult
    from barnabas.coord.machine import Result
    from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
    from barnabas.wire.types import Uuid

Answer: TypeAlias = "Callable[[ShareGroupHeartbeatResponse], None]"
Failures: TypeAlias = "dict[Uuid, dict[int, ErrorCode]]"
HandleEvent: TypeAlias = "Callable[[str, Event[GroupCoordinator]], None]"


class ShareGroupStates:
    """The tasks of all share groups of this broker."""

    def __init__(self, loop: Loop, handle: HandleEvent, shares: ShareStates) -> None:
        """`handle` gives an event to the coordinator of a group id (`GroupCoordinators.handle`)."""
        self._loop = loop
        self._handle = handle
        self._shares = shares
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        """By id of a group that has a task: operations to run when the task is over."""

    def heartbeat(self, request: ShareGroupHeartbeatRequest, client: ClientContext, reply: Answer) -> None:
        """Handle ShareGroupHeartbeat, after the group's task if it has one.

        KafkaError if the group has no coordinator.
        """
        waiting = self._waiting.get(request.group_id)
        if waiting is not None:
            waiting.append(lambda: self._resume(request, client, reply))
            return
        self._handle(request.group_id, lambda groups, at: groups.share_groups.heartbeat(request, reply, client, at))

    def _resume(self, request: ShareGroupHeartbeatRequest, client: ClientContext, reply: Answer) -> None:
        from barnabas.coord.groups.share.tasks import heartbeat_error

        try:
            self.heartbeat(request, client, reply)
        except Exception as error:
            known = answer_for(f"A heartbeat of a member of the share group {request.group_id}", error)
            reply(heartbeat_error(known.code, known.message))

    def committed(self, result: Result) -> None:
        """The records of a group's event are committed: start its task, if it has one."""
        if getattr(result, "task", None) is not None:
            self._start(result)  # type: ignore[arg-type]  # no other result has tasks
        resumed: Any = getattr(result, "resumed", ())
        for heartbeat in resumed:
            self._resume(heartbeat.request, heartbeat.context, heartbeat.ticket)

    def _start(self, result: ShareGroupResult) -> None:
        """Send a request for each partition to the share coordinators; the last answer ends the task."""
        task = result.task
        assert task is not None
        group_id = task.group_id
        waiting = self._waiting.get(group_id)
        if waiting is not None:  # one task at a time: it may depend on the one before
            waiting.append(lambda: self._start(result))
            return
        self._waiting[group_id] = deque()
        failures: Failures = {}
        missing = sum(map(len, task.partitions.values()))

        def note_result(topic_id: Uuid, partition: int, error_code: int) -> None:
            nonlocal missing
            if error_code:
                failures.setdefault(topic_id, {})[partition] = ErrorCode(error_code)
            missing -= 1
            if not missing:
                self._end(result, group_id, failures)

        for topic_id, partitions in task.partitions.items():
            for partition in partitions:
                self._ask(result, SharePartitionKey(group_id, topic_id, partition), note_result)

    def _ask(self, result: ShareGroupResult, key: SharePartitionKey, then: Callable[[Uuid, int, int], None]) -> None:
        from barnabas.coord.groups.share.tasks import InitializeStates
        from barnabas.wire.messages.groups.share_state import InitializeShareGroupStateRequestPartitionData

        def note_outcome(outcome: Any) -> None:
            then(key.topic_id, key.partition, outcome.error_code)

        task = result.task
        if isinstance(task, InitializeStates):
            request = InitializeShareGroupStateRequestPartitionData(
                partition=key.partition,
                state_epoch=task.state_epoch,
                start_offset=task.partitions[key.topic_id][key.partition],
            )
            self._shares.initialize(key, request, note_outcome)
        else:
            self._shares.delete(key, note_outcome)

    def _end(self, result: ShareGroupResult, group_id: str, failures: Failures) -> None:
        """Give the outcome to the group's coordinator, then run the operations that have waited."""
        waiting = self._waiting.pop(group_id)
        try:
            self._handle(group_id, lambda groups, at: groups.share_groups.task_ended(result, failures, at))
        except Exception as error:
            known = answer_for(f"The end of a task of the share group {group_id}", error)
            release_replies(result.failed_replies(known.code), self._loop)
        while waiting:
            call_guarded(f"An operation that waits for a task of the share group {group_id}", waiting.popleft())
