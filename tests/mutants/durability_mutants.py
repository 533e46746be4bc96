"""Bugs that only a crash shows: what is synced, in which order, and what a start may believe. L1, L3, L5, section 3."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, crashes

_D = "tests/crash/test_what_is_durable.py::"
_L = "tests/storage/test_log_dirs.py::"
DURABILITY = (
    crashes(
        "directory-not-synced",
        "storage/flush_job.py",
        "                self._files.sync_dir(directory)\n",
        "                pass\n",
    ),
    Mutant(
        "parent-directory-not-synced",
        "storage/log.py",
        'directories = [self.directory, self.directory.rpartition("/")[0]]',
        "directories = [self.directory]",
        _D + "test_flush_brings_every_file_of_the_log_to_the_disk",
    ),
    crashes(
        "made-data-directory-not-synced",
        "storage/log_dir.py",
        '            self._files.sync_dir(made.rpartition("/")[0] or "/")\n',
        "            pass\n",
    ),
    crashes(
        "file-not-synced",
        "storage/flush_job.py",
        "            self._files.sync(target)\n",
        "            pass\n",
    ),
    crashes(
        "recovery-point-ahead-of-the-sync",
        "storage/log.py",
        "        point = job.offset\n",
        "        point = self.log_end_offset\n",
    ),
    Mutant(
        "recovery-point-at-the-end-of-an-open-segment",
        "storage/log.py",
        "            return self.recovery_point - 1\n        return self.recovery_point\n",
        "            return self.recovery_point\n        return self.recovery_point\n",
        _D + "test_recovery_point_is_written_as_the_end_only_when_indexes_are_complete",
    ),
    Mutant(
        "rolled-segment-counts-as-synced-with-its-indexes",
        "storage/log.py",
        "        self.recovery_point = min(self.recovery_point, self.log_end_offset - 1)",
        "        pass",
        _D + "test_recovery_point_is_written_as_the_end_only_when_indexes_are_complete",
    ),
    crashes(
        "checkpoint-written-in-place",
        "storage/checkpoints.py",
        "    temporary = path + layout.TEMPORARY_SUFFIX\n",
        "    temporary = path\n",
    ),
    crashes(
        "checkpoint-renamed-before-it-is-synced",
        "storage/checkpoints.py",
        "    if sync:\n        files.sync(file)\n",
        "",
    ),
    crashes(
        "rename-of-a-checkpoint-not-synced",
        "storage/checkpoints.py",
        '        files.sync_dir(path.rpartition("/")[0])\n',
        "        pass\n",
    ),
    crashes(
        "clean-stop-marker-left-behind",
        "storage/log_dir.py",
        "            self._files.unlink(marker)\n",
        "            pass\n",
    ),
    Mutant(
        "clean-stop-marker-may-come-back",
        "storage/log_dir.py",
        "            self._files.sync_dir(self.path)  #",
        "            pass  #",
        _D + "test_start_makes_sure_that_the_marker_of_the_clean_stop_is_gone",
    ),
    crashes(
        "hole-between-segments-accepted",
        "storage/recovery.py",
        "        if segment.base_offset > max(end, plan.recovery_point, plan.log_start_offset) and not",
        "        if False and not",
    ),
    crashes(
        "segments-behind-the-cut-kept",
        "storage/recovery.py",
        "            _cut(log, [segment, *behind], position, end)\n",
        "            _cut(log, [segment], position, end)\n",
    ),
    Mutant(
        "cut-of-a-torn-tail-not-synced",
        "storage/segment.py",
        "        self._files.truncate(self.file, size)\n        self._files.sync(self.file)\n",
        "        self._files.truncate(self.file, size)\n",
        _D + "test_what_recovery_has_cut_off_does_not_come_back",
    ),
    Mutant(
        "truncation-not-synced",
        "storage/segment.py",
        "        self._files.truncate(self.file, position)\n        self._files.sync(self.file)\n",
        "        self._files.truncate(self.file, position)\n",
        _D + "test_what_was_truncated_does_not_come_back",
    ),
    Mutant(
        "interrupted-deletion-not-finished",
        "storage/loader.py",
        "        if offset < first and name.endswith(layout.SEGMENT_SUFFIXES):\n",
        "        if False:\n",
        "tests/storage/test_recovery.py::test_interrupted_deletion_of_segments_is_finished",
    ),
    Mutant(
        "log-start-forgotten-with-its-segments",
        "storage/log_dirs.py",
        "lambda log: log.log_start_offset or None,",
        "lambda log: log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None,",
        _L + "test_log_start_is_kept_though_the_first_segment_says_it_as_well",
    ),
    Mutant(
        "checkpoints-of-a-deleted-topic-believed",
        "storage/log_dirs.py",
        "            if log_dir.has_written(name, key):\n",
        "            if False:\n",
        _L + "test_checkpoints_of_a_deleted_topic_say_nothing_of_a_new_one_of_its_name",
    ),
    Mutant(
        "late-checkpoint-brings-a-deleted-topic-back",
        "storage/log_dirs.py",
        "            log_dir.drop_planned(name)\n",
        "",
        _L + "test_checkpoint_written_late_does_not_speak_of_a_topic_that_was_made_again",
    ),
    Mutant(
        "data-alone-counts-as-synced-with-its-indexes",
        "storage/log.py",
        "        if job.data_only:",
        "        if False:",
        _D + "test_flush_of_data_alone_brings_all_records_to_the_disk",
    ),
    crashes(
        "snapshot-from-before-the-first-segment-used",
        "storage/producer_replay.py",
        "[offset for offset in snapshots if first <= offset <= end_offset]",
        "[offset for offset in snapshots if offset <= end_offset]",
        states=60_000,
    ),
    Mutant(
        "snapshot-of-a-clean-stop-not-synced",
        "storage/log.py",
        "            targets.extend(self.files.open(path) for path in snapshots if self.files.exists(path))\n",
        "",
        _D + "test_clean_stop_leaves_nothing_that_a_crash_could_change",
    ),
    Mutant(
        "indexes-of-a-clean-stop-not-synced",
        "storage/log.py",
        "        self._dir_version += 1  # index",
        "        pass  # index",
        _D + "test_clean_stop_leaves_nothing_that_a_crash_could_change",
    ),
    Mutant(
        "names-of-index-files-not-synced",
        "storage/log.py",
        "                    self._dir_version += 1\n",
        "                    pass\n",
        _D + "test_flush_brings_the_names_of_index_files_to_the_disk",
    ),
    Mutant(
        "indexes-let-go-of-not-synced",
        "storage/segment.py",
        "        if any(index is None or index.is_on_disk for index in (self._offset_index, self._time_index)):\n",
        "        if self._offset_index is not None and self._offset_index.is_on_disk:\n",
        _D + "test_flush_brings_every_file_of_the_log_to_the_disk",
    ),
    crashes(
        "leader-epoch-written-after-its-data",
        "storage/leader_epochs.py",
        "        if self._put(epoch, start_offset):\n            self.save()\n",
        "        self._put(epoch, start_offset)\n",
    ),
)
