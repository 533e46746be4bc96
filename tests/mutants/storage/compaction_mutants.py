"""Bugs in the removal of data: compaction, swap, retention (L5, L7-L9)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_T = "tests/storage/"
_R = "tests/storage/cleaning/test_retention.py::"
_D = "tests/crash/test_what_is_durable.py::"
COMPACTION = (
    Mutant(
        "tombstone-dropped-before-its-horizon",
        "storage/cleaning/cleaner.py",
        "            elif batch.base_timestamp <= self._task.now_ms:\n                marks",
        "            else:\n                marks",
        _T + "cleaning/test_tombstones.py::test_tombstone_gets_a_horizon_and_is_removed_when_it_has_passed",
    ),
    Mutant(
        "tombstone-dropped-in-the-first-pass",
        "storage/cleaning/cleaner.py",
        "            if not batch.attributes & DELETE_HORIZON_BIT:\n                horizon_ms",
        "            if False:\n                horizon_ms",
        _T + "cleaning/test_tombstones.py::test_tombstone_gets_a_horizon_and_is_removed_when_it_has_passed",
    ),
    Mutant(
        "marker-dropped-before-its-horizon",
        "storage/cleaning/cleaner.py",
        "        elif batch.record_count and batch.base_timestamp > self._task.now_ms:\n",
        "        elif False:\n",
        _T + "cleaning/test_cleaning_transactions.py::test_marker_is_removed_only_after_its_data_and_its_horizon",
    ),
    Mutant(
        "last-batch-of-a-live-producer-dropped",
        "storage/cleaning/cleaner.py",
        "            return batch.last_offset == last_offset\n",
        "            return False\n",
        _T + "cleaning/test_cleaning_transactions.py::test_last_batch_of_an_active_producer_is_kept_as_a_header",
    ),
    Mutant(
        "aborted-data-kept",
        "storage/cleaning/cleaner.py",
        "            self._drop(batch, target)\n        elif batch.base_offset >= self._end_offset:\n",
        "            self._keep(batch, target)\n        elif batch.base_offset >= self._end_offset:\n",
        _T + "cleaning/test_cleaning_transactions.py::test_aborted_data_is_removed_and_committed_data_is_kept",
    ),
    Mutant(
        "active-segment-cleaned",
        "storage/cleaning/selection.py",
        "    closed = list(log.segments)[:-1]\n",
        "    closed = list(log.segments)\n",
        _T + "cleaning/test_cleaning_selection.py::test_active_segment_is_untouched",
    ),
    Mutant(
        "undecided-records-cleaned",
        "storage/cleaning/selection.py",
        "        if log.segments[at + 1].base_offset > stable:\n",
        "        if False:\n",
        _T + "cleaning/test_cleaning_selection.py::test_nothing_at_or_past_the_last_stable_offset_is_cleaned",
    ),
    Mutant(
        "compaction-lag-ignored",
        "storage/cleaning/selection.py",
        "        if lag_ms > 0 and segment.largest_timestamp() > now_ms - lag_ms:\n",
        "        if False:\n",
        _T + "cleaning/test_cleaning_selection.py::test_records_younger_than_min_compaction_lag_are_left",
    ),
    Mutant(
        "compaction-relies-on-unsynced-data",
        "storage/log.py",
        "        known = min(self.last_stable_offset, self.synced_offset)\n",
        "        known = self.last_stable_offset\n",
        _T + "cleaning/test_cleaning_selection.py::test_nothing_that_is_not_synced_is_cleaned",
    ),
    Mutant(
        "compaction-relies-on-unsynced-markers",
        "storage/producers/producer_state.py",
        "        self._unsynced[first_offset] = header.base_offset\n",
        "",
        _T + "cleaning/test_cleaning_selection.py::test_transaction_is_open_to_the_cleaner_until_its_marker_is_synced",
    ),
    Mutant(
        "cleaned-files-not-synced",
        "storage/cleaning/cleaned_segment.py",
        "        job.sync_files()\n",
        "",
        _D + "test_each_step_of_a_compaction_is_durable_before_the_next",
    ),
    Mutant(
        "names-of-cleaned-files-not-synced",
        "storage/cleaning/cleaned_segment.py",
        '        self._files.sync_dir(segment.stem.rpartition("/")[0])\n',
        "",
        _D + "test_each_step_of_a_compaction_is_durable_before_the_next",
    ),
    Mutant(
        "last-swap-not-on-the-disk-before-the-next",
        "storage/cleaning/cleaned_segment.py",
        "        files.sync_dir(directory)  # the last",
        "        pass  # the last",
        _D + "test_each_step_of_a_compaction_is_durable_before_the_next",
    ),
    Mutant(
        "swap-not-synced-before-the-old-files-are-retired",
        "storage/recover/swap.py",
        '    if sync:\n        files.sync_dir(segment.stem.rpartition("/")[0])\n',
        "",
        _D + "test_each_step_of_a_compaction_is_durable_before_the_next",
    ),
    Mutant(
        "old-files-not-retired-before-the-swap-is-renamed",
        "storage/recover/swap.py",
        "                renamed.append(path + layout.DELETED_SUFFIX)\n    files.sync_dir(directory)\n",
        "                renamed.append(path + layout.DELETED_SUFFIX)\n",
        _D + "test_each_step_of_a_compaction_is_durable_before_the_next",
    ),
    Mutant(
        "unpublished-swap-treated-as-published",
        "storage/recover/swap.py",
        "    cleaned = _with_suffix(stay, layout.CLEANED_SUFFIX)\n",
        "    cleaned: list[str] = []\n",
        _T + "recover/test_swap.py::test_new_segment_that_was_not_published_is_dropped",
    ),
    Mutant(
        "indexes-rebuilt-in-place-below-the-recovery-point",
        "storage/recover/recovery.py",
        "        segment.reset_indexes(temporary=True)\n",
        "        segment.reset_indexes()\n",
        _D + "test_index_rebuilt_below_the_recovery_point_is_complete_or_missing",
    ),
    Mutant(
        "retention-ignores-the-high-watermark",
        "storage/cleaning/retention.py",
        "        return segments[at + 1].base_offset <= log.high_watermark\n",
        "        return True\n",
        _R + "test_nothing_at_or_above_the_high_watermark_is_removed",
    ),
    Mutant(
        "retention-by-size-removes-one-segment-too-many",
        "storage/cleaning/retention.py",
        "        if surplus < 0 or not _is_removable",
        "        if surplus + segment.size < 0 or not _is_removable",
        _R + "test_oldest_segments_are_removed_while_retention_bytes_remain",
    ),
    Mutant(
        "retention-by-the-oldest-record-of-a-segment",
        "storage/cleaning/retention.py",
        "        if now_ms - segment.largest_timestamp() <= retention_ms:\n",
        "        if now_ms - segment.first_batch_timestamp() <= retention_ms:\n",
        _R + "test_segment_is_as_old_as_its_youngest_record",
    ),
)
