"""The fault sweep: a broker whose disk fails one operation, or all from one on; a sample of the cases.

BARNABAS_FAULTS sets how many of each history, BARNABAS_SEED chooses others; all: `python -m tests.crash --faults`.
"""

from __future__ import annotations

import pytest

from tests.crash.faults.histories import HISTORIES
from tests.crash.faults.memory import MEMORY
from tests.crash.faults.run import sample
from tests.crash.faults.sweep import Case, cases, cases_of, check
from tests.support.volume import first_seed, how_many, limited, replay

COUNT = how_many("BARNABAS_FAULTS", 3)


def spread(found: list[Case], count: int) -> list[Case]:
    """About so many cases, at equal distances, the first among them."""
    return found[:: max(1, len(found) // count)]


@limited(600)
@pytest.mark.parametrize("history", HISTORIES)
def test_a_failed_file_operation_breaks_no_promise(history: str) -> None:
    print(replay("BARNABAS_FAULTS", COUNT))
    for case in sample(history, COUNT, first_seed()):
        check(case)


@limited(600)
@pytest.mark.parametrize("history", ["compressed", "groups", "share"])
def test_a_lack_of_memory_breaks_no_promise(history: str) -> None:
    """The request is answered or its connection closed, and the broker goes on."""
    chosen = [case for case in cases(history) if case.fault.error == MEMORY]
    assert len(chosen) >= 15
    for case in spread(chosen, 2 * COUNT):
        check(case)


KNOWN = (
    ("produce", "EMFILE", r"read_file .*\.timeindex", "an index was read after the write of the batch"),
    ("produce", "EIO", r"read /data/a-0", "the head of a response stayed in the output without its records"),
    ("transactions", "EMFILE", r"read_file .*\.txnindex", "so was the index of aborted transactions"),
    ("compaction", "ENOSPC", r"rename .*index\.swap", "files of a cleaned segment were renamed in part"),
    ("compaction", "ENOSPC", r"rename .*log", "the new segment was renamed for deletion by the repeated step"),
    ("metadata", "ENOSPC", r"rename /data/[bc]-0$", "a topic was deleted in part"),
    ("metadata", "EIO", r"/data/d-0", "a topic was made in part"),
    ("deletion", "ENOSPC", r"log-start-offset-checkpoint", "the log start must be written before it is acknowledged"),
    ("groups", "ENOSPC", r"write_at /data/__consumer_offsets", "a commit that was not written is not acknowledged"),
)


@pytest.mark.parametrize(("history", "error", "operation", "why"), KNOWN)
def test_a_fault_that_has_broken_a_promise(history: str, error: str, operation: str, why: str) -> None:
    chosen = cases_of(history, error, operation)
    assert chosen, why
    for case in spread(chosen, COUNT):
        check(case)
