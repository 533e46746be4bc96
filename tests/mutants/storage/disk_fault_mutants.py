"""Bugs that only a failed file operation shows: state in memory that is ahead of the files, or half a change."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_FILE = "tests/storage/test_disk_faults.py::"
_KNOWN = "tests/crash/test_faults.py::test_a_fault_that_has_broken_a_promise"
_LOG = _FILE + "test_a_log_does_not_depend_on_a_failed_operation"

DISK_FAULTS = (
    Mutant(
        "aborted-transaction-written-after-its-marker",
        "storage/segments/segment.py",
        "        self.txn_index.append(entry)\n        self.has_txn_index = True\n",
        "        self.txn_index.append(entry)\n        self.txn_index.save()\n        self.has_txn_index = True\n",
        _LOG,
    ),
    Mutant(
        "failed-roll-leaves-the-file-of-its-segment",
        "storage/segments/segment.py",
        "            files.unlink(segment.path(layout.LOG_SUFFIX))  # a start",
        "            pass  # a start",
        _FILE + "test_a_segment_whose_roll_has_failed_is_not_on_the_disk",
    ),
    Mutant(
        "short-write-not-undone",
        "storage/log.py",
        "        self.segments.active.undo_append()\n",
        "",
        _LOG,
    ),
    Mutant(
        "segment-forgotten-before-its-files-are-renamed",
        "storage/local_log.py",
        "            try:\n                self.drop(segment, renamed)\n",
        "            try:\n                self.segments.remove(segment)\n"
        "                self.drop(segment, renamed)\n",
        _FILE + "test_what_a_deletion_has_left_is_deleted_by_the_next",
    ),
    Mutant(
        "index-of-a-rolled-segment-not-written",
        "storage/segments/segment_files.py",
        "(self._offset_index, self._time_index, self._txn_index):\n            if index is not None and index.unsaved",
        "(self._offset_index, self._time_index):\n            if index is not None and index.unsaved",
        _LOG,
    ),
    Mutant(
        "index-read-after-the-write-of-a-batch",
        "storage/segments/segment.py",
        "            self._load_indexes()\n            greatest = self.max_timestamp\n"
        "        self._files.write_at(self._file or self.file, data, start)\n"
        "        self.size = start + header.size\n",
        "            pass\n"
        "        self._files.write_at(self._file or self.file, data, start)\n"
        "        self.size = start + header.size\n"
        "        self._load_indexes()\n"
        "        greatest = self.max_timestamp\n",
        _KNOWN,
    ),
    Mutant(
        "index-of-aborted-transactions-read-after-the-write-of-a-marker",
        "storage/log.py",
        "                segment.load_txn_index()\n",
        "                pass\n",
        _KNOWN,
    ),
    Mutant(
        "head-of-a-response-sent-without-its-records",
        "broker/apis/dispatcher.py",
        "    is_joined = True\n",
        "    connection.out.append(_RESPONSE_HEADER.pack(size, correlation_id))\n    is_joined = True\n",
        _KNOWN,
    ),
    Mutant(
        "renamed-files-of-a-cleaned-segment-forgotten",
        "storage/recover/swap.py",
        "        segment.renamed(kind, suffix)\n",
        "",
        "tests/storage/recover/test_swap.py::test_a_segment_whose_files_are_renamed_in_part_is_found_by_their_names",
    ),
    Mutant(
        "new-segment-retired-with-the-old-ones",
        "storage/cleaning/replacement.py",
        "        if not self._is_retired:\n",
        "        if True:\n",
        _KNOWN,
    ),
    Mutant(
        "failed-checkpoint-counts-as-written",
        "storage/directories/checkpoint_files.py",
        "                del self._written[name]\n",
        "                pass\n",
        _KNOWN,
    ),
    Mutant(
        "commit-acknowledged-on-a-full-disk",
        "broker/coordinators/runtime.py",
        "            return shard.coordinator.append_failed(result, error.code, at)\n",
        "            return result\n",
        _KNOWN,
    ),
    Mutant(
        "failed-deletion-of-a-topic-not-handled",
        "broker/replicas/partitions.py",
        '            partition.report_failure("deletion", failure)\n',
        "            raise\n",
        "tests/broker/metadata/test_metadata_changes.py::test_a_partition_that_cannot_be_renamed_does_not_keep_the_others",
    ),
    Mutant(
        "lack-of-memory-for-a-request-not-handled",
        "broker/apis/dispatcher.py",
        "            except MemoryError:\n                raise no_memory(route, client_id, size) from None\n",
        "            except ZeroDivisionError:\n                raise no_memory(route, client_id, size) from None\n",
        "tests/crash/test_faults.py::test_a_lack_of_memory_breaks_no_promise",
    ),
)
