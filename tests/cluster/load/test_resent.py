"""Duplicates that count as a defect of librdkafka, and duplicates that stay findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.wire.batches.batch_builder import build_batch
from compat.checker.finding import Finding
from tests.cluster.load.resent import MOST_TIMES, resent

AGAIN = Finding("duplicate", "'a' is at in-0@0 (one), in-0@1 (one)")
COPIED = Finding("duplicate", "'a' is at out-1@4 (two), out-1@5 (two)")
Producer = tuple[int, int]
"""Producer id and epoch."""


def log(folder: Path, *producers: Producer, partition: str = "in-0") -> Path:
    """A directory whose partition has a batch of one record of each of these producers."""
    (folder / partition).mkdir()
    with open(folder / partition / "00000000000000000000.log", "wb") as file:
        for offset, (producer_id, epoch) in enumerate(producers):
            more = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0}
            file.write(build_batch([(0, None, b"a")], offset, **more))
    return folder


def test_copies_in_two_epochs_of_one_producer_and_those_made_of_them_are_let_pass(tmp_path: Path) -> None:
    assert resent([AGAIN, COPIED], log(tmp_path, (7, 0), (7, 1))) == [AGAIN, COPIED]


@pytest.mark.parametrize(
    "producers",
    [
        pytest.param([(7, 0), (7, 0)], id="one epoch"),
        pytest.param([(7, 0), (8, 1)], id="two producers"),
        pytest.param([(-1, -1), (-1, -1)], id="not idempotent"),
        pytest.param([(7, 0)], id="not in the log"),
    ],
)
def test_other_duplicates_stay(tmp_path: Path, producers: list[Producer]) -> None:
    assert resent([AGAIN, COPIED], log(tmp_path, *producers)) == []


def test_a_copy_that_was_made_twice_stays(tmp_path: Path) -> None:
    copied_thrice = Finding("duplicate", "'a' is at out-1@4 (two), out-1@5 (two), out-1@6 (two)")
    assert resent([AGAIN, copied_thrice], log(tmp_path, (7, 0), (7, 1))) == [AGAIN]


def test_findings_of_other_kinds_stay(tmp_path: Path) -> None:
    assert resent([Finding("lost-write", AGAIN.text)], log(tmp_path, (7, 0), (7, 1))) == []


def test_all_records_that_were_on_their_way_are_let_pass(tmp_path: Path) -> None:
    findings = [Finding("duplicate", AGAIN.text.replace("'a'", f"'{number}'")) for number in range(20)]
    assert resent(findings, log(tmp_path, (7, 0), (7, 1))) == findings


def test_many_times_are_not_let_pass(tmp_path: Path) -> None:
    findings = [
        Finding("duplicate", f"'{epoch}' is at in-0@{epoch} (one), in-0@{epoch + 1} (one)")
        for epoch in range(MOST_TIMES + 1)
    ]
    directory = log(tmp_path, *((7, epoch) for epoch in range(MOST_TIMES + 2)))
    assert resent(findings, directory) == []
    assert resent(findings[1:], directory) == findings[1:]
