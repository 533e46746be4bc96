"""A whole broker with crashes of every kind: its answers under `barnabas.log.sync=always` hold (R12, R13, L3, I1).

BARNABAS_CRASH_STATES sets the number of states, BARNABAS_SEED chooses others.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from tests.crash.broker_promises import Promises, check_broker
from tests.crash.broker_work import BrokerWork, start
from tests.crash.move_work import MoveWork, check_one_is_current, start_with_two_dirs
from tests.support.disks.broken import require
from tests.support.disks.disk import Image, Note, RecordingDisk
from tests.support.disks.survivors import Kind, Survivors
from tests.support.volume import first_seed, how_many, limited, replay

STATES = how_many("BARNABAS_CRASH_STATES", 50)
PER_HISTORY = min(STATES, 100)
Check: TypeAlias = "Callable[[Image, Promises], None]"


@limited(600)
def test_answers_of_a_broker_hold_after_any_crash() -> None:
    """Histories of a broker that continues after one power failure; some of the crash states of each."""
    explore(BrokerWork, check)


@limited(600)
def test_moves_between_log_directories_lose_nothing_in_any_crash() -> None:
    """The same while replicas move between two directories: exactly one log of each is current afterwards (KIP-113)."""
    assert explore(MoveWork, check_moves) or STATES < 10 * PER_HISTORY  # in some histories no move is completed


def explore(kind: type[BrokerWork], check_state: Check) -> int:
    """Check crash states of histories of a kind; how many replicas have moved in them."""
    print(replay("BARNABAS_CRASH_STATES", STATES))
    moves = 0
    for history in range((STATES + PER_HISTORY - 1) // PER_HISTORY):
        random = Random(f"{first_seed()}:{history}")
        promises, image = Promises(), Image()
        for episode in range(2):
            disk = RecordingDisk(image)
            before = promises.copy()
            work = kind(disk, random, promises, 1000 * episode)
            work.run(40)
            moves += getattr(work, "moves", 0)
            image, promises = crash(disk, before, random, PER_HISTORY // 2, check_state)
    return moves


def crash(
    disk: RecordingDisk, promises: Promises, random: Random, states: int, check_state: Check
) -> tuple[Image, Promises]:
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
            check_state(image, promises)
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


def check_moves(image: Image, promises: Promises) -> None:
    """Start a broker with two directories on a crash state; the moves go on, and everything is still there."""
    disk = RecordingDisk(image)
    memory = start_with_two_dirs(disk)
    check_one_is_current(disk, memory)
    check_broker(memory, promises)
    for _ in range(5):
        memory.advance(1.0)
        memory.broker.loop.end_turn()
    require(not memory.broker.log_dirs.futures.logs, "a move does not end")
    check_broker(memory, promises)
    memory.close()
