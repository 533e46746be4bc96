"""Bugs in changes of the metadata: their order, their syncs, and what waits for a disk."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_T = "tests/broker/metadata/test_metadata_changes.py::"
_IMAGE = "tests/coord/cluster/test_image.py::"
METADATA_CHANGES = (
    Mutant(
        "change-answered-before-its-sync",
        "broker/metadata/log/metadata_log.py",
        "                yield job.run\n",
        "                yield None\n",
        _T + "test_a_change_is_answered_and_visible_when_it_is_durable",
    ),
    Mutant(
        "image-replayed-before-the-records-are-durable",
        "broker/metadata/log/metadata_log.py",
        "        if sync:\n            yield from self._sync()\n",
        "        yield from replay_in_steps(self.image, records, delta)\n        records = []\n"
        "        if sync:\n            yield from self._sync()\n",
        _T + "test_a_change_is_answered_and_visible_when_it_is_durable",
    ),
    Mutant(
        "new-topic-visible-with-a-part-of-its-partitions",
        "coord/cluster/metadata_log/replay.py",
        "    return (staged,) if is_new else (image,)\n",
        "    return (image,)\n",
        "tests/coord/cluster/test_replay_in_steps.py::test_a_new_topic_appears_with_all_its_partitions",
    ),
    Mutant(
        "image-has-more-than-its-log",
        "broker/metadata/log/metadata_log.py",
        "        records = yield from as_written_in_steps(records, metadata_version)\n",
        "        yield from as_written_in_steps(records, metadata_version)\n",
        _T + "test_the_image_is_what_readers_of_the_log_have",
    ),
    Mutant(
        "cleared-elr-is-no-change",
        "coord/cluster/metadata_log/replay.py",
        "                _change(topic, partition, _no_elr(topic.topic_id, index), delta)\n",
        "                topic.partitions[index] = partition.without_elr()\n",
        _IMAGE + "test_a_cleared_elr_is_a_change_of_the_partition",
    ),
    Mutant(
        "lost-directory-taken-for-one-that-is-not-known",
        "coord/cluster/topic_image.py",
        'LOST_DIRECTORY: Final = Uuid(15) + b"\\x02"',
        'LOST_DIRECTORY: Final = Uuid(15) + b"\\x01"',
        _IMAGE + "test_reserved_directories_are_kafkas",
    ),
    Mutant(
        "sync-of-the-metadata-in-the-loop",
        "broker/metadata/log/metadata_log.py",
        "                yield job.run\n",
        "                job.run()\n                yield None\n",
        _T + "test_no_request_waits_for_the_disk_in_the_loop",
    ),
    Mutant(
        "queued-changes-lost-after-a-failure",
        "broker/metadata/change_queue.py",
        '                outcome = answer_for("A change of the metadata", error)\n',
        "                self._waiting.clear()\n                outcome = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)\n",
        _T + "test_a_bug_in_a_change_is_answered_and_the_next_is_made",
    ),
    Mutant(
        "change-validated-when-it-is-queued",
        "broker/metadata/controller.py",
        "        self._queue.add(lambda: self._change(validate), then)\n",
        "        outcome = validate()\n        if isinstance(outcome, Generator):\n"
        "            outcome = run_in_place(outcome)\n"
        "        self._queue.add(lambda: self._change(lambda: outcome), then)\n",
        _T + "test_a_change_is_validated_when_the_earlier_ones_are_in_effect",
    ),
    Mutant(
        "change-in-progress-lost-by-a-stop",
        "broker/metadata/change_queue.py",
        "            self._work.finish()\n",
        "            pass\n",
        _T + "test_a_stop_finishes_the_change_in_progress_and_refuses_the_others",
    ),
    Mutant(
        "partitions-made-in-one-turn",
        "broker/event_loop/steps.py",
        "            if now() >= end:\n",
        "            if False:\n",
        _T + "test_others_are_served_while_partitions_are_made_and_deleted",
    ),
    Mutant(
        "directories-made-in-the-loop",
        "broker/replicas/partitions.py",
        "            yield directories.make\n",
        "            directories.make()\n",
        _T + "test_no_request_waits_for_the_disk_in_the_loop",
    ),
    Mutant(
        "one-directory-sync-for-each-deleted-partition",
        "storage/local_log.py",
        "            segment.forget()\n        return renamed\n",
        "            segment.forget()\n        self.files.sync_dir(parent)\n        return renamed\n",
        _T + "test_a_deletion_syncs_the_log_directory_once",
    ),
    Mutant(
        "deletion-leaves-stale-checkpoints",
        "broker/replicas/partitions.py",
        "        for name in CHECKPOINT_NAMES:  #",
        "        for name in ():  #",
        _T + "test_new_partitions_write_no_checkpoint_one_by_one",
    ),
    Mutant(
        "leader-epoch-synced-in-the-loop",
        "storage/append/leader_epochs.py",
        "        if self._put(epoch, start_offset):\n            self._version += 1\n",
        "        if self._put(epoch, start_offset):\n            self._version += 1\n            self.save()\n",
        _T + "test_the_first_records_of_many_partitions_wait_for_no_disk_in_the_loop",
    ),
    Mutant(
        "queued-changes-made-in-one-turn",
        "broker/metadata/change_queue.py",
        "            if self._waiting:\n                yield None\n",
        "",
        "tests/broker/metadata/test_change_queue.py::test_thousands_of_changes_that_wait_are_made_in_many_turns",
    ),
)
