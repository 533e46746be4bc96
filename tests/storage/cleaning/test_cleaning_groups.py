"""Which segments are cleaned into one (L7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.log import Log
from tests.support.logs.cleaning_driver import (
    clean,
    close_segment,
    compacted,
    keys_and_values,
    put,
)
from tests.support.logs.log_driver import open_log, truncate


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, compacted())


def test_small_segments_are_merged_while_they_fit(log: Log) -> None:
    """L7: by segment.bytes; the last batch of each is kept, at least as a header, so that its end is known."""
    for value in (b"1", b"2", b"3", b"4", b"5", b"6"):
        put(log, (b"a", value * 550), (b"k" + value, value))
        close_segment(log)
    files_before = {Path(segment.path(layout.LOG_SUFFIX)).stat().st_mtime_ns // 10**6 for segment in log.segments}
    groups = clean(log).groups
    assert [group.replaced for group in groups] == [[0, 2], [4, 6], [8, 10]]
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8, 12]
    assert len(keys_and_values(log)) == 7
    again = clean(log)
    assert [group.replaced for group in again.groups] == [[0, 4, 8]]
    assert Path(log.segments[0].path(layout.LOG_SUFFIX)).stat().st_mtime_ns // 10**6 in files_before


def test_index_size_limits_a_group(log: Log) -> None:
    """L7: the larger of a segment's two indexes counts."""
    for value in (b"1", b"2", b"3"):
        for key in range(4):
            put(log, (b"k%d" % key, value * 60))
        close_segment(log)
    sizes = {
        Path(segment.path(kind)).stat().st_size
        for segment in list(log.segments)[:-1]
        for kind in (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)
    }
    log.config.segment_index_bytes = max(sizes) * 2
    assert [len(group.replaced) for group in clean(log).groups] == [2, 1]


def test_range_of_offsets_limits_a_group(tmp_path: Path) -> None:
    """L7: offsets in an index are relative, and have 31 bits."""
    log = open_log(tmp_path, compacted())
    put(log, (b"a", b"1"))
    truncate(log, 0, fully=True)
    put(log, (b"a", b"1"))
    log.log_end_offset = log.producers.end_offset = 2**31 - 2
    close_segment(log)
    put(log, (b"a", b"2"), (b"b", b"2"))
    close_segment(log)
    put(log, (b"c", b"3"))
    close_segment(log)
    assert [group.replaced for group in clean(log).groups] == [[0, 2**31 - 2], [2**31]]
