"""Bugs in how files are opened and closed, and in what a start makes of wrong files (L2, R22)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_OPEN = "tests/storage/test_open_files.py::"
_WRONG = "tests/broker/server/test_wrong_files.py::"

FILES = (
    Mutant(
        "unsynced-data-forgotten-when-its-file-is-closed",
        "storage/segments/segment_files.py",
        "                self._closed_at = self.size\n",
        "                pass\n",
        _OPEN + "test_the_error_of_a_write_is_not_lost_with_the_file_that_was_closed",
    ),
    Mutant(
        "file-closed-without-a-sync-where-errors-are-not-reported",
        "storage/segments/segment_files.py",
        "                self._sync_before_closing(file)\n",
        "                pass\n",
        _OPEN + "test_the_error_of_a_write_is_not_lost_with_the_file_that_was_closed",
    ),
    Mutant(
        "rolled-segment-closed-before-its-flush",
        "storage/segments/segment_files.py",
        "self._is_released = self._file is not None and self.size > self.synced_size",
        "self._is_released = False",
        _OPEN + "test_the_error_of_a_write_is_not_lost_with_the_file_that_was_closed",
    ),
    Mutant(
        "error-of-the-file-system-reported-once",
        "storage/directories/log_dir.py",
        "                self._error = error\n",
        "",
        _OPEN + "test_a_write_that_fails_after_its_file_was_closed_is_reported",
    ),
    Mutant(
        "share-of-open-files-not-kept",
        "storage/open_files.py",
        "while len(self._open) >= self.share and self._close_one():",
        "while False and self._close_one():",
        _OPEN + "test_only_the_share_is_open_and_everything_is_served",
    ),
    Mutant(
        "another-thread-closes-files",
        "storage/open_files.py",
        "        if threading.get_ident() != self._thread:\n            return False\n",
        "",
        _OPEN + "test_another_thread_closes_no_file",
    ),
    Mutant(
        "reserve-of-descriptors-not-kept",
        "storage/open_files.py",
        "if descriptor >= self.crowded_from:",
        "if False:",
        _OPEN + "test_records_are_read_at_once_when_descriptors_are_scarce",
    ),
    Mutant(
        "slices-keep-the-last-descriptors",
        "storage/read/log_reader.py",
        "if file.fd >= self._open_files.slices_until:",
        "if False:",
        _OPEN + "test_records_are_read_at_once_when_descriptors_are_scarce",
    ),
    Mutant(
        "flush-opens-all-its-files-at-once",
        "storage/segments/segment_files.py",
        "[self._file or self.path(layout.LOG_SUFFIX)]",
        "[self.file]",
        _OPEN + "test_a_flush_of_many_logs_opens_few_files_at_once",
    ),
    Mutant(
        "wrong-topic-id-served-empty",
        "storage/directories/log_dirs.py",
        "if not is_known and self._has_records(log_dir, key, path):",
        "if False:",
        _WRONG + "test_a_topic_id_that_was_changed_keeps_the_partition_offline",
    ),
    Mutant(
        "deleted-topics-forgotten-at-a-start",
        "broker/metadata/log/metadata_log.py",
        "offset = self.image.offset + 1\n        self._log_dirs.deleted_topics.add_all(delta.removed_topic_ids)\n",
        "offset = self.image.offset + 1\n",
        _WRONG + "test_a_topic_that_was_deleted_and_made_again_begins_empty_after_a_crash_between",
    ),
    Mutant(
        "check-on-reads-skipped",
        "storage/log.py",
        "if self.checks_reads and read.slice is not None:",
        "if False:",
        "tests/broker/fetch/test_check_on_reads.py::test_a_batch_with_a_wrong_crc_fails_only_the_reads_that_cross_it",
    ),
    Mutant(
        "only-the-first-batch-of-a-read-checked",
        "storage/read/log_reader.py",
        "    for batch in walk_batches(BatchView, data, records.offset + len(data), records.offset):\n",
        "    for batch in list(walk_batches(BatchView, data, records.offset + len(data), records.offset))[:1]:\n",
        "tests/broker/fetch/test_check_on_reads.py::test_a_batch_with_a_wrong_crc_fails_only_the_reads_that_cross_it",
    ),
    Mutant(
        "topics-created-without-descriptors",
        "broker/apis/admin/topics.py",
        "    if not ctx.broker.log_dirs.has_descriptors():\n",
        "    if False:\n",
        "tests/broker/server/test_few_descriptors.py::test_topics_are_refused_before_the_last_descriptor",
    ),
    Mutant(
        "log-removed-for-a-wrong-log-start",
        "storage/recover/loader.py",
        "    _check_log_start(state, checkpointed)\n",
        "",
        "tests/storage/directories/test_wrong_text_files.py::test_a_wrong_log_start_does_not_remove_the_log_after_a_clean_stop",
    ),
    Mutant(
        "partition-on-another-file-system-served",
        "storage/directories/log_dirs.py",
        "if log_dir is not None and not is_made and not self.files.is_on_same_file_system(path, log_dir.path):",
        "if False:",
        "tests/storage/directories/test_log_dirs.py::test_a_partition_on_another_file_system_is_not_served",
    ),
    Mutant(
        "incomplete-identity-replaced",
        "storage/directories/meta_properties.py",
        "    if not text or len(text) > _MAX_CLUSTER_ID",
        "    if len(text) > _MAX_CLUSTER_ID",
        "tests/storage/directories/test_wrong_text_files.py::test_an_incomplete_identity_is_not_replaced_by_another_one",
    ),
)
