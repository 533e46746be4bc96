"""The fault sweep: a broker whose disk fails one operation, or all from one on; a sample of the cases.

BARNABAS_FAULTS sets how many of each history, BARNABAS_SEED repeats a choice; all: `python -m tests.crash --faults`.
"""

from __future__ import annotations

import os
from random import SystemRandom

import pytest

from tests.crash.faults.histories import HISTORIES
from tests.crash.faults.run import sample
from tests.crash.faults.sweep import Case, check

COUNT = int(os.environ.get("BARNABAS_FAULTS", "15"))
SEED = int(os.environ.get("BARNABAS_SEED", str(SystemRandom().randrange(2**32))))


@pytest.mark.scaled
@pytest.mark.timeout(0)
@pytest.mark.parametrize("history", HISTORIES)
def test_a_failed_file_operation_breaks_no_promise(history: str) -> None:
    print(f"repeat with BARNABAS_SEED={SEED} BARNABAS_FAULTS={COUNT}")
    for case in sample(history, COUNT, SEED):
        check(case)


KNOWN = (
    "produce:3:EMFILE",  # the index of a segment is read after the write
    "produce:24:EIO",  # the head of a response stays in the output when its records cannot be read
    "transactions:14:EMFILE",  # the index of aborted transactions cannot be read by a fetch
    "transactions:15:EMFILE",  # ... and by the append of a marker, which is in the log already
    "compaction:23:ENOSPC",  # the files of a cleaned segment are renamed in part
    "compaction:197:ENOSPC",  # the cleaned segment itself is renamed for deletion, when the step is repeated
)


@pytest.mark.parametrize("name", KNOWN)
def test_a_fault_that_has_broken_a_promise(name: str) -> None:
    check(Case.parse(name))
