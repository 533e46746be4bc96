"""Replaces several segments by one compacted segment; after a crash there are either the old ones or the new one.

A replacement has one new segment, with base offset X, and replaces every segment from X up to the last that was read
for it. The steps are Kafka's; the directory is synced between them, so that the renames of two steps are not reordered:

1. *write*: its files are made as `X.log.cleaned`, `X.index.cleaned` ...; each is synced, then the directory;
2. `publish`: they are renamed to `.swap`, the log file last. From here on the new segment is valid;
3. `retire`: the replaced segments' files are renamed to `.deleted`, in order of offset;
4. `finish`: `.swap` is renamed to the final names, the log file first.

The `.deleted` files are removed after `file.delete.delay.ms`. What `complete` does at the next start:

| found                            | step reached | done                                                               |
|----------------------------------|--------------|--------------------------------------------------------------------|
| any `.cleaned`                   | 1, or in 2   | it is removed, with every `.swap` of the same or later base offset |
| `X.log.swap`, nothing `.cleaned` | 2, or in 3   | segments from X to its last offset are removed, `.swap` renamed    |
| other `.swap` files of X only    | in 4         | renamed                                                            |
| `.deleted`                       | any          | removed                                                            |

The last offset in `X.log.swap` may be below replaced segments of which nothing was kept. After a crash these segments
are restored. That loses nothing, but it must not restore a deleted key: `retire` syncs the directory after each of
them, in order of offset, so a tombstone is never removed before the records that it deletes. Kafka uses the same names;
it may leave several new segments (it splits a segment whose offsets exceed the index): `complete` handles those too.
Rule L7. Sources: Kafka's `LocalLog.replaceSegments`, `LogLoader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files
from barnabas.storage.segments.segment import Segment
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import CRC_START, MAGIC

_KINDS = layout.SEGMENT_SUFFIXES


def publish(files: Files, segment: Segment) -> None:
    """Step 2: rename the `.cleaned` files of a synced segment to `.swap`; durable on return."""
    _rename_all(files, segment, layout.SWAP_SUFFIX, reversed(_KINDS))


def retire(files: Files, directory: str, replaced: Iterable[Segment], new: Segment, renamed: list[str]) -> None:
    """Step 3: rename the files of the replaced segments, given in order of offset, to `.deleted`.

    Durable on return. The new paths are added to `renamed`, also before an OSError, after which the step can be
    repeated. Producer snapshots are renamed with their segments, except for the one at the new base offset.
    """
    end = new.next_offset()
    for segment in replaced:
        if segment.base_offset >= end:
            files.sync_dir(directory)
        paths = segment.paths()
        if segment.base_offset != new.base_offset:
            paths.append(f"{directory}/{layout.snapshot_name(segment.base_offset)}")
        segment.forget()
        for path in paths:
            if files.exists(path):
                files.rename(path, path + layout.DELETED_SUFFIX)
                renamed.append(path + layout.DELETED_SUFFIX)
    files.sync_dir(directory)


def finish(files: Files, segment: Segment, *, sync: bool = True) -> None:
    """Step 4: rename the `.swap` files to their final names; durable on return, unless `sync` is False.

    Without the sync the caller does not wait for the disk, and after a crash the step is repeated. It must be durable
    before the next `.cleaned` file is made: beside that a `.swap` file with a higher offset would look unpublished.
    """
    _rename_all(files, segment, "", _KINDS, sync=sync)


def _rename_all(files: Files, segment: Segment, suffix: str, kinds: Iterable[str], *, sync: bool = True) -> None:
    segment.save_indexes()
    for kind in kinds:
        path = segment.path(kind)
        if files.exists(path):
            files.rename(path, f"{segment.stem}{kind}{suffix}")
        segment.renamed(kind, suffix)
    segment.rename_suffix(suffix)
    if sync:
        files.sync_dir(segment.stem.rpartition("/")[0])


# --- at a start


def complete(files: Files, directory: str, names: Mapping[str, int]) -> dict[str, int]:
    """Undo or finish a replacement after a crash; the remaining files (name -> size).

    Raises DamagedLog, before removing a file, when a published segment is damaged: its records may be nowhere else.
    """
    stay = dict(names)
    _undo_unpublished(files, directory, stay)
    swapped = [name for name in _with_suffix(stay, layout.SWAP_SUFFIX) if layout.offset_of(name) is not None]
    if swapped:
        _finish_published(files, directory, stay, swapped)
    _finish_deletions(files, directory, stay)
    return stay


def _finish_deletions(files: Files, directory: str, stay: dict[str, int]) -> None:
    """Remove the `.deleted` files, and first the indexes that a crash has kept from being renamed with their log."""
    deleted = _with_suffix(stay, layout.DELETED_SUFFIX)
    logs = {name.removesuffix(layout.DELETED_SUFFIX) for name in deleted} - stay.keys()
    stems = {name.removesuffix(layout.LOG_SUFFIX) for name in logs if name.endswith(layout.LOG_SUFFIX)}
    orphans = [name for name in stay if name.endswith(_KINDS) and name.partition(".")[0] in stems]
    if orphans:
        _remove(files, directory, stay, orphans)
        files.sync_dir(directory)  # without the renamed log file they would look like a missing log
    _remove(files, directory, stay, deleted)


def _with_suffix(names: Iterable[str], suffix: str) -> list[str]:
    return sorted(name for name in names if name.endswith(suffix))


def _undo_unpublished(files: Files, directory: str, stay: dict[str, int]) -> None:
    cleaned = _with_suffix(stay, layout.CLEANED_SUFFIX)
    if not cleaned:
        return
    first = min(layout.offset_of(name) or 0 for name in cleaned)
    unpublished = [
        name for name in _with_suffix(stay, layout.SWAP_SUFFIX) if (layout.offset_of(name) or 0) >= first
    ]  # fmt: skip
    if unpublished:
        _remove(files, directory, stay, unpublished)
        files.sync_dir(directory)  # a `.swap` that reappears without its `.cleaned` would look published
    _remove(files, directory, stay, cleaned)


def _finish_published(files: Files, directory: str, stay: dict[str, int], swapped: list[str]) -> None:
    ends = {
        int(name[: layout.OFFSET_DIGITS]): stay[name]
        for name in swapped
        if name.endswith(layout.LOG_SUFFIX + layout.SWAP_SUFFIX)
    }
    if ends:
        for base_offset, size in ends.items():
            ends[base_offset] = _end_of(files, directory, base_offset, size)
        replaced = range(min(ends), max(ends.values()))
        segment_files = [name for kind in _KINDS for name in _with_suffix(stay, kind)]
        removed = [name for name in segment_files if (at := layout.offset_of(name)) in replaced or at in ends]
        _remove(files, directory, stay, removed)
        files.sync_dir(directory)
    for name in sorted(swapped, key=lambda name: layout.LOG_SUFFIX not in name):
        final = name.removesuffix(layout.SWAP_SUFFIX)
        files.rename(f"{directory}/{name}", f"{directory}/{final}")
        stay[final] = stay.pop(name)
    files.sync_dir(directory)


def _end_of(files: Files, directory: str, base_offset: int, size: int) -> int:
    """The offset after the last batch of `X.log.swap`; DamagedLog if a batch is invalid."""
    segment = Segment(files, directory, base_offset, size=size, suffix=layout.SWAP_SUFFIX)
    position, end = 0, base_offset
    for header, batch in segment.batches():
        if header.magic != MAGIC or header.base_offset < end or header.crc != crc32c(batch[CRC_START:]):
            break
        position, end = position + header.size, header.last_offset + 1
    if position != size:
        raise DamagedLog(
            f"{segment.path(layout.LOG_SUFFIX)}, which was written by a compaction, is damaged at byte {position}"
        )
    return end


def _remove(files: Files, directory: str, stay: dict[str, int], names: list[str]) -> None:
    for name in names:
        files.unlink(f"{directory}/{name}")
        del stay[name]
