"""R2: the epochs of a log compared with a naive model that keeps the epoch of every offset."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.append.leader_epochs import LeaderEpochCache
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.files import UnsyncedFiles
from tests.support.cases import for_each
from tests.support.logs.log_driver import PROPERTY


def naive_end_offset(epoch_of: dict[int, int], epoch: int, end: int) -> tuple[int, int]:
    """endOffsetFor computed from every offset."""
    if not epoch_of or epoch == -1 or epoch > max(epoch_of.values()):
        return -1, -1
    if epoch == max(epoch_of.values()):
        return epoch, end
    above = min(offset for offset, known in epoch_of.items() if known > epoch)
    below = [known for known in epoch_of.values() if known <= epoch]
    return (max(below) if below else epoch), above


@PROPERTY
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 3), st.integers(1, 5)),
            st.tuples(st.just("cut end"), st.floats(0, 1), st.just(0)),
            st.tuples(st.just("cut start"), st.floats(0, 1), st.just(0)),
        ),
        max_size=25,
    )
)
def test_end_offset_for_an_epoch_equals_the_naive_model(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, float, int]]
) -> None:
    """R2: through appends under ascending epochs and truncations at either end, in memory and loaded from the file."""
    path = f"{tmp_path_factory.mktemp('epochs')}/leader-epoch-checkpoint"
    cache = LeaderEpochCache(UnsyncedFiles(), path)
    epoch_of: dict[int, int] = {}
    start = end = epoch = 0
    for step, amount, count in steps:
        if step == "append":
            epoch += int(amount)
            cache.assign(epoch, end)
            epoch_of |= dict.fromkeys(range(end, end + count), epoch)
            end += count
        elif step == "cut end":
            end = start + int(amount * (end - start))
            cache.truncate_from_end(end)
        else:
            start += int(amount * max(0, end - start - 1))
            cache.truncate_from_start(start)
        cache.save()
        epoch_of = {offset: known for offset, known in epoch_of.items() if start <= offset < end}
        read_back = LeaderEpochCache.load(UnsyncedFiles(), path)
        read_back.truncate_from_start(start)
        for known in (cache, read_back):
            assert known.latest_epoch == max(epoch_of.values(), default=-1)
            assert [known.epoch_for_offset(offset) for offset in epoch_of] == list(epoch_of.values())
            for requested in range(-1, epoch + 2):
                assert known.end_offset_for(requested, end) == naive_end_offset(epoch_of, requested, end)


def test_entry_that_contradicts_later_ones_removes_them(tmp_path: Path) -> None:
    """R2: epochs and start offsets are strictly ascending."""
    cache = LeaderEpochCache(UnsyncedFiles(), f"{tmp_path}/leader-epoch-checkpoint")
    for epoch, offset in ((1, 0), (2, 10), (4, 20)):
        cache.assign(epoch, offset)
    cache.assign(3, 15)
    assert cache.entries() == [(1, 0), (2, 10), (3, 15)]
    cache.assign(5, 10)
    assert cache.entries() == [(1, 0), (5, 10)]


def test_checkpoint_is_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    cache = LeaderEpochCache(UnsyncedFiles(), str(path))
    cache.assign(0, 0)
    cache.assign(3, 17)
    cache.save()
    assert path.read_text() == "0\n2\n0 0\n3 17\n"


@for_each("text", ["1\n0\n", "0\n2\n0 0\n", "0\n1\n0\n", "0\n1\na b\n", "0\nx\n", "\xff", "0"])
def test_damaged_checkpoint_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptCheckpoint, match="leader-epoch-checkpoint"):
        LeaderEpochCache.load(UnsyncedFiles(), str(path))
