"""Replaces segments of an open log by a cleaned one: the steps of `recover.swap`, and the switch of the open log.

The log switches to the new segment when that is published (`.swap`), before the old files are renamed, so that readers
never open a missing file. `publish` and `retire` wait for the disk and may be called in a thread; the other steps are
fast and must be called in the thread that uses the log.
"""

from __future__ import annotations

from barnabas.storage import layout
from barnabas.storage.cleaning.task import CleanedGroup
from barnabas.storage.log import Log
from barnabas.storage.recover import swap
from barnabas.storage.segments.segment import Segment


class Replacement:
    """The replacement by one cleaned segment: `run`, or `publish`, `take_over`, `retire`, `finish` in this order."""

    __slots__ = ("_is_retired", "_log", "_new", "_renamed", "_replaced")

    def __init__(self, log: Log, group: CleanedGroup) -> None:
        """No segment of the log may have been deleted or truncated since the cleaning began (`is_cleaning`)."""
        self._log = log
        self._renamed: list[str] = []
        self._is_retired = False
        self._replaced = [log.segments[log.segments.floor_index(base)] for base in group.replaced]
        assert [segment.base_offset for segment in self._replaced] == group.replaced
        self._new = Segment(log.files, log.directory, group.base_offset, size=group.size, suffix=layout.CLEANED_SUFFIX)
        self._new.has_txn_index = group.has_txn_index

    def publish(self) -> None:
        """Publish the new segment, durably. After an OSError the old segments are unchanged, also on disk."""
        try:
            swap.publish(self._log.files, self._new)
        except OSError:
            self._remove_unpublished()
            raise

    def _remove_unpublished(self) -> None:
        """Remove the new files: while there is a `.cleaned` file, a start does not use a `.swap` that is left."""
        try:
            for suffix in (layout.SWAP_SUFFIX, layout.CLEANED_SUFFIX):
                for kind in layout.SEGMENT_SUFFIXES:
                    self._log.files.unlink(f"{self._new.stem}{kind}{suffix}")
        except OSError:
            pass  # the next start removes them

    def take_over(self) -> None:
        """Make the open log read from the new segment."""
        self._log.replace_segments(self._replaced, self._new)

    def retire(self) -> list[str]:
        """Rename the old files; their new paths, to be removed after file.delete.delay.ms.

        After an OSError it can be called again. Once it is done it does nothing: the files of the new segment may
        have the names of the old ones.
        """
        if not self._is_retired:
            swap.retire(self._log.files, self._log.directory, self._replaced, self._new, self._renamed)
            self._is_retired = True
        return self._renamed

    def finish(self) -> None:
        """Rename the new files to their final names. After an OSError it can be called again."""
        swap.finish(self._log.files, self._new, sync=False)

    def run(self) -> list[str]:
        """All steps, waiting for the disk; the paths to be removed."""
        self.publish()
        self.take_over()
        renamed = self.retire()
        self.finish()
        return renamed
