"""Reconciles a member with its target assignment (KIP-1071).

First the member revokes tasks that are not in its target; it stays in its epoch until a heartbeat confirms that. Then
it enters the epoch of the target assignment and gets the tasks that are free; the others follow when other members have
revoked them. So a task never runs twice, and no process has it twice, since its threads share one state directory. A
task that only changes its role on a member is not revoked. Source: Kafka 4.4
`CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.groups.streams.tasks import HeldTasks, Task, Tasks, TaskSet
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.group import StreamsGroup
    from barnabas.coord.groups.streams.member import StreamsMember


def reconciled(
    member: StreamsMember, epoch: int, target: Tasks, holders: Holders, owned: Tasks | None
) -> StreamsMember:
    """The member after one heartbeat; equal to `member` if nothing can be changed.

    `epoch` and `target` are the target assignment; `holders` knows which tasks are free. `owned` are the tasks that the
    heartbeat lists; None: no change. KafkaError FENCED_MEMBER_EPOCH when the record of the member is from a
    release that knows more states.
    """
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The member is in an unknown state. The member must abandon all its tasks and rejoin.",
            )
        return _advanced(member, epoch, epoch, target, holders, owned)
    if member.is_reconciled_to(epoch):
        return member
    if member.state is MemberState.UNREVOKED:
        if _still_has(member.revoking, owned):
            return member
        return _advanced(member, member.epoch + 1, epoch, target, holders, owned)
    return _advanced(member, member.epoch, epoch, target, holders, owned)


def _still_has(revoked: HeldTasks, owned: Tasks | None) -> bool:
    """Whether the member may still have any of these: the heartbeat lists one of them, or no tasks at all."""
    return bool(revoked) and (owned is None or revoked.overlaps(owned))


class _Step(NamedTuple):
    """The changes to the tasks of one role."""

    retained: TaskSet
    revoked: TaskSet
    granted: TaskSet
    awaited: TaskSet


def _advanced(
    member: StreamsMember, own_epoch: int, epoch: int, target: Tasks, holders: Holders, owned: Tasks | None
) -> StreamsMember:
    """The next step towards the target assignment."""
    has = member.assigned.tasks
    active = _step(has.active, target.active, frozenset(filter(holders.may_run, target.active - has.active)))
    standby = _step(has.standby, target.standby, frozenset(filter(holders.may_stand_by, target.standby - has.standby)))
    warmup = _step(has.warmup, target.warmup, frozenset(filter(holders.may_warm_up, target.warmup - has.warmup)))

    promoted = (standby.revoked | warmup.revoked) & target.active
    revoking = HeldTasks(
        {task: member.assigned.active[task] for task in active.revoked},
        standby.revoked - promoted,
        warmup.revoked - promoted,
    )
    must_wait = _still_has(revoking, owned)
    waiting = promoted if must_wait else promoted - active.granted  # keep the copy until the task runs
    demoted = has.active & standby.granted
    retained = HeldTasks(
        {task: member.assigned.active[task] for task in active.retained},
        standby.retained | demoted | (waiting & has.standby),
        warmup.retained | (waiting & has.warmup),
    )
    if must_wait:
        entered = member if own_epoch == member.epoch else member.entered(own_epoch)
        return entered._replace(state=MemberState.UNREVOKED, assigned=retained, revoking=revoking)
    granted = HeldTasks(dict.fromkeys(active.granted, epoch), standby.granted, warmup.granted)
    state = MemberState.UNRELEASED if active.awaited or standby.awaited or warmup.awaited else MemberState.STABLE
    entered = member if epoch == member.epoch else member.entered(epoch)
    return entered._replace(state=state, assigned=retained.merge(granted), revoking=HeldTasks())


def _step(has: TaskSet, shall: TaskSet, free: TaskSet) -> _Step:
    return _Step(has & shall, has - shall, free, shall - has - free)


class Holders:
    """Which tasks are free for a member, given the other members and their processes."""

    def __init__(self, group: StreamsGroup, member: StreamsMember, *, replaced: str | None = None) -> None:
        """`replaced` is the static member that this one replaces."""
        self._group = group
        self._process_id = member.process_id
        self._ids = {member.member_id, replaced}
        self._revoking = member.revoking.tasks

    def may_run(self, task: Task) -> bool:
        """Whether no other member runs it, and no other thread of the process has a copy."""
        runner = self._group.runners.get(task)
        is_free = runner is None or (runner in self._ids and task not in self._revoking.active)
        return is_free and not self._is_copied_beside(task)

    def may_stand_by(self, task: Task) -> bool:
        """Whether no other thread of the process has it in any role."""
        return not self._runs_beside(task) and not self._is_copied_beside(task) and task not in self._revoking.copies

    def may_warm_up(self, task: Task) -> bool:
        """Whether no thread of the process has it in any role."""
        runner = self._group.runners.get(task)
        is_here = runner is not None and self._process_of(runner) == self._process_id
        return not is_here and not self._is_copied_beside(task) and task not in self._revoking.copies

    def _runs_beside(self, task: Task) -> bool:
        runner = self._group.runners.get(task)
        return runner is not None and runner not in self._ids and self._process_of(runner) == self._process_id

    def _is_copied_beside(self, task: Task) -> bool:
        copies = self._group.copies.get(task, ())
        return any(holder not in self._ids and self._process_of(holder) == self._process_id for holder in copies)

    def _process_of(self, member_id: str) -> str:
        return self._group.members[member_id].process_id
