"""A whole broker with crashes of every kind: its answers under `barnabas.log.sync=always` hold (R12, R13, L3, I1).

BARNABAS_CRASH_STATES sets the number of states, BARNABAS_SEED repeats a run.
"""

from __future__ import annotations

import os
from random import Random, SystemRandom

import pytest

from tests.crash.broker_promises import Promises, check_broker
from tests.crash.broker_work import BrokerWork, start
from tests.crash.disk import Image, Note, RecordingDisk
from tests.crash.survivors import Kind, Survivors

STATES = int(os.environ.get("BARNABAS_CRASH_STATES", "100"))
SEED = int(os.environ.get("BARNABAS_SEED", str(SystemRandom().randrange(2**32))))
PER_HISTORY = 100


@pytest.mark.scaled
@pytest.mark.timeout(0)
def test_answers_of_a_broker_hold_after_any_crash() -> None:
    """Histories of a broker that continues after one power failure; some of the crash states of each."""
    print(f"repeat with BARNABAS_SEED={SEED} BARNABAS_CRASH_STATES={STATES}")
    for history in range((STATES + PER_HISTORY - 1) // PER_HISTORY):
        random = Random(f"{SEED}:{history}")
        promises, image = Promises(), Image()
        for episode in range(2):
            disk = RecordingDisk(image)
            before = promises.copy()
            BrokerWork(disk, random, promises, 1000 * episode).run(40)
            image, promises = crash(disk, before, random, PER_HISTORY // 2)


def crash(disk: RecordingDisk, promises: Promises, random: Random, states: int) -> tuple[Image, Promises]:
    """Check some of the states of a history; the last state, and the promises at its moment."""
    survivors = Survivors(disk)
    cuts = sorted(random.choices(range(1, len(disk.operations) + 1), k=states))
    done = 0
    image = Image()
    for cut in cuts:
        for operation in disk.operations[done:cut]:
            survivors.take(operation)
            if isinstance(operation, Note):
                operation.what(promises)
        done = cut
        kind = random.choice(list(Kind))
        image = survivors.image(kind, random)
        try:
            check(image, promises)
        except Exception as error:
            error.add_note(f"{kind.name} after operation {cut} of {len(disk.operations)}")
            raise
    for records in promises.records.values():
        records.in_flight.clear()  # `check` has repeated them on a copy of the disk; these producers stop
    return image, promises


def check(image: Image, promises: Promises) -> None:
    """Start a broker on a crash state."""
    memory = start(RecordingDisk(image))
    check_broker(memory, promises)
    memory.close()
