"""Every kind of run, from a few seeds: `BARNABAS_SEEDS` sets how many, `BARNABAS_SEED` where they begin.

T1-T12, G1-G6, I1-I7 under crashes, kills, pauses and a network that loses, delays and repeats. A failure prints the
command that replays it.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys

import pytest

from tests.simulation.faults import Faults
from tests.simulation.kinds import KINDS, SimulationFailure, run
from tests.simulation.trace import combined
from tests.support.volume import first_seed, how_many, limited

SEEDS = how_many("BARNABAS_SEEDS", 5)
CLUSTER_SEEDS = max(1, SEEDS * 3 // 5)
"""Several brokers take longer than one."""
COORDINATOR_SEEDS = max(2, SEEDS // 3)
COORDINATOR_KINDS = sorted(kind for kind in KINDS if kind.startswith("cluster-"))
"""Coordinators of a cluster that move; a run takes more than a second."""
FIRST_SEED = first_seed()

_traces: dict[str, str] = {}
"""The hash of what the first seed of a kind did in this process."""


@pytest.fixture(autouse=True)
def _quiet():
    """Disable the log output of the brokers."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def run_all(kind: str, seeds: int = SEEDS) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        trace = run(kind, seed).world.trace
        if seed == FIRST_SEED:
            _traces[kind] = trace.digest()


@limited(600)
def test_transactions_are_atomic_and_complete_under_faults() -> None:
    """T3-T12, I1-I7."""
    run_all("transactions")


@limited(600)
def test_groups_share_work_and_become_stable_under_faults() -> None:
    """G1, G2, T11, T12."""
    run_all("groups")


@limited(600)
def test_consumer_groups_have_one_owner_and_become_stable_under_faults() -> None:
    """G2, G3, T11, T12."""
    run_all("consumer")


@limited(600)
def test_groups_migrate_between_protocols_under_faults() -> None:
    """G3, G4."""
    run_all("migration")


@limited(600)
def test_share_groups_finish_every_record_and_lock_it_once_under_faults() -> None:
    """G5."""
    run_all("share")


@limited(600)
def test_a_cluster_loses_nothing_and_becomes_whole_under_faults() -> None:
    """R1-R12, R14, R16, R17, R24, I1, I2: nodes fail, lose power or a disk, are cut off; at last all at once."""
    run_all("cluster", CLUSTER_SEEDS)


@limited(600)
def test_transactions_are_atomic_and_complete_while_their_coordinators_move() -> None:
    """T1, T3-T12, I1-I7, G2: leaders of the internal topics are killed, cut off, paused, moved, within any step."""
    run_all("cluster-transactions", COORDINATOR_SEEDS)


@limited(600)
def test_groups_of_both_protocols_keep_their_offsets_while_their_coordinator_moves() -> None:
    """G1-G4, T11, T12."""
    run_all("cluster-groups", COORDINATOR_SEEDS)


@limited(600)
def test_share_groups_finish_every_record_while_leaders_and_coordinator_move() -> None:
    """G5."""
    run_all("cluster-share", COORDINATOR_SEEDS)


@limited(600)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_promises_hold_while_single_operations_of_the_disk_fail(kind: str) -> None:
    """T3-T12, G1-G6, I1-I7: no descriptor, no space, a short write, an error of the disk; beside the other faults."""
    seeds = SEEDS // 15 if kind in COORDINATOR_KINDS else SEEDS // 5
    for seed in range(FIRST_SEED, FIRST_SEED + max(1, seeds)):
        run(kind, seed, disk_errors=4)


def late_requests() -> Faults:
    """Every fifth request arrives up to 6 s late."""
    return Faults(late=0.2, late_s=6.0)


def test_late_requests_do_not_affect_later_transactions_of_kip_890() -> None:
    """T9: delayed EndTxn and writes, across transactions."""
    for seed in range(FIRST_SEED, FIRST_SEED + max(1, SEEDS // 5)):
        run("transactions", seed, generation=2, faults=late_requests())


def test_an_epoch_may_take_longer_than_ten_seconds_to_get() -> None:
    """Found by soak: the next producer of the setup began while the request of the one before was still late."""
    run("transactions", 26328324, generation=2, faults=late_requests())


def test_a_late_end_of_kip_98_breaks_a_later_transaction_and_is_detected() -> None:
    """T9: the first generation cannot detect it, in Kafka neither."""

    def runs() -> None:
        for seed in range(1, 200):
            run("transactions", seed, generation=1, faults=late_requests())

    with pytest.raises(SimulationFailure, match=r"never committed|torn|not all of it"):
        runs()


@limited(600)
def test_a_seed_gives_the_same_run_in_another_process() -> None:
    """With another seed of Python's hashes, and with other runs before it."""
    command = [sys.executable, "-m", "tests.simulation", "--kind", "all", "--seed", str(FIRST_SEED), "--seeds", "1"]
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    process = subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    there = dict(re.findall(r"^(\S+): 1 runs .* traces (\w+)$", process.stdout, re.MULTILINE))
    for kind in KINDS.keys() - _traces.keys():
        run_all(kind, 1)
    assert there == {kind: combined([trace]) for kind, trace in _traces.items()}
