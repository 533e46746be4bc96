"""Putting a cleaned segment into a log that is in use: `storage.swap`'s steps, and when the log reads from where.

The log turns to the new segment once that is published (`.swap`), before the old files get other names, so that at no
moment a reader looks for a name that is gone. `publish` and `retire` wait for the disk and are made for a thread; the
others are quick, and are called where the log is used.
"""

from __future__ import annotations

from barnabas.storage import layout, swap
from barnabas.storage.cleaning.task import CleanedGroup
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment


class Replacement:
    """One cleaned segment on its way into its log. Call the steps in their order."""

    __slots__ = ("_log", "_new", "_replaced")

    def __init__(self, log: Log, group: CleanedGroup) -> None:
        """The log must have been left alone by whoever deletes and cuts since the cleaning began (`is_cleaning`)."""
        self._log = log
        self._replaced = [log.segments[log.segments.floor_index(base)] for base in group.replaced]
        assert [segment.base_offset for segment in self._replaced] == group.replaced
        self._new = Segment(log.files, log.directory, group.base_offset, size=group.size, suffix=layout.CLEANED_SUFFIX)
        self._new.has_txn_index = group.has_txn_index

    def publish(self) -> None:
        """From here on a crash leaves the new segment. After an OSError the old ones stand, on the disk as well."""
        try:
            swap.publish(self._log.files, self._new)
        except OSError:
            for kind in layout.SEGMENT_SUFFIXES:
                self._log.files.unlink(f"{self._new.stem}{kind}{layout.SWAP_SUFFIX}")
                self._log.files.unlink(f"{self._new.stem}{kind}{layout.CLEANED_SUFFIX}")
            raise

    def take_over(self) -> None:
        """The log reads from the new segment."""
        self._log.replace_segments(self._replaced, self._new)

    def retire(self) -> list[str]:
        """Rename the old files; the new names, to be removed after file.delete.delay.ms."""
        return swap.retire(self._log.files, self._log.directory, self._replaced, self._new)

    def finish(self) -> None:
        """The new files get their names."""
        swap.finish(self._log.files, self._new, sync=False)

    def run(self) -> list[str]:
        """All steps at once, for whoever may wait; the files to be removed."""
        self.publish()
        self.take_over()
        renamed = self.retire()
        self.finish()
        return renamed
