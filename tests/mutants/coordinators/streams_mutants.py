"""Bugs in streams groups: active and standby tasks, internal topics, restarts (KIP-1071)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_T = "tests/coord/groups/streams/"
_ANY_NETWORK = _T + "test_streams_simulation.py::test_streams_groups_in_a_bad_network"
_ASSIGNOR = _T + "test_assignor.py::"
_TOPICS = _T + "test_internal_topics.py::"

STREAMS = (
    Mutant(
        "task-granted-while-another-runs-it",
        "coord/groups/streams/reconciliation.py",
        "        is_free = runner is None or (runner in self._ids and task not in self._revoking.active)\n",
        "        is_free = True\n",
        _ANY_NETWORK,
    ),
    Mutant(
        "revoked-tasks-forgotten-at-once",
        "coord/groups/streams/reconciliation.py",
        "    return bool(revoked) and (owned is None or revoked.overlaps(owned))\n",
        "    return False\n",
        _ANY_NETWORK,
    ),
    Mutant(
        "copy-beside-the-runner-in-one-process",
        "coord/groups/streams/reconciliation.py",
        "        return not self._runs_beside(task) and not self._is_copied_beside(task) and ",
        "        return not self._is_copied_beside(task) and ",
        _T + "test_reconciliation.py::test_no_process_has_a_task_twice",
    ),
    Mutant(
        "lost-answers-not-repeated",
        "coord/groups/streams/groups.py",
        "    if request.member_epoch != outcome.member.epoch:\n        return True\n",
        "    if request.member_epoch == JOIN_EPOCH:\n        return True\n",
        _ANY_NETWORK,
        {"BARNABAS_EXAMPLES": "300"},
    ),
    Mutant(
        "epochs-of-others-not-fenced",
        "coord/groups/modern/joining.py",
        "        if epoch < member.epoch and epoch == member.previous_epoch and self._owns_only_assigned(member)",
        "        if epoch < member.epoch",
        _T + "test_heartbeat.py::test_epochs_of_others_are_fenced_and_a_lost_answer_is_repeated",
    ),
    Mutant(
        "topology-not-kept",
        "coord/groups/streams/heartbeat.py",
        "            self.records.append(records.topology(self._group.group_id, topology))\n",
        "            self._group.topology = topology\n",
        _T + "test_heartbeat.py::test_a_restart_finds_all_as_it_was",
    ),
    Mutant(
        "topics-looked-at-once",
        "coord/groups/streams/groups.py",
        "                group.passing.configured = None\n",
        "                pass\n",
        _T + "test_heartbeat.py::test_a_topic_that_goes_takes_the_tasks_with_it",
    ),
    Mutant(
        "quota-never-full",
        "coord/groups/streams/assignor.py",
        "        return count < self._base or (count == self._base and self._extra > 0)\n",
        "        return True\n",
        _ASSIGNOR + "test_members_come_and_go",
    ),
    Mutant(
        "standby-where-the-task-runs",
        "coord/groups/streams/assignor.py",
        "            if task not in process.tasks:\n                board.stand_by",
        "            if True:\n                board.stand_by",
        _ASSIGNOR + "test_every_task_runs_once_and_evenly",
    ),
    Mutant(
        "joined-topics-not-made-alike",
        "coord/groups/streams/internal_topics.py",
        "            self._decided[name] = count\n\n    def _count_in_common",
        "            pass\n\n    def _count_in_common",
        _TOPICS + "test_repartition_topics_that_are_joined_get_the_largest_number",
    ),
)
