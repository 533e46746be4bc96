"""Every kind of run, from a fixed range of seeds: `BARNABAS_SEEDS` sets how many, `BARNABAS_SEED` where they begin.

T1-T12, G1-G6, I1-I7 under crashes, kills, pauses and a network that loses, delays and repeats. A failure prints the
command that replays it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from tests.simulation.faults import Faults
from tests.simulation.kinds import KINDS, SimulationFailure, run

SEEDS = int(os.environ.get("BARNABAS_SEEDS", "100"))
FIRST_SEED = int(os.environ.get("BARNABAS_SEED", "1"))


@pytest.fixture(autouse=True)
def _quiet():
    """The brokers' logs say the same over and over."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def run_all(kind: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        run(kind, seed)


@pytest.mark.timeout(0)
def test_transactions_are_atomic_and_end_whatever_goes_wrong() -> None:
    """T3-T12, I1-I7."""
    run_all("transactions")


@pytest.mark.timeout(0)
def test_groups_share_their_work_and_come_to_rest_whatever_goes_wrong() -> None:
    """G1, G2, T11, T12."""
    run_all("groups")


@pytest.mark.timeout(0)
def test_consumer_groups_never_have_two_owners_and_come_to_rest_whatever_goes_wrong() -> None:
    """G2, G3, T11, T12."""
    run_all("consumer")


@pytest.mark.timeout(0)
def test_groups_change_between_the_protocols_while_they_work_whatever_goes_wrong() -> None:
    """G3, G4."""
    run_all("migration")


@pytest.mark.timeout(0)
def test_share_groups_settle_every_record_and_lock_it_once_whatever_goes_wrong() -> None:
    """G5."""
    run_all("share")


def late_requests() -> Faults:
    """Every fifth request arrives when its client has gone on."""
    return Faults(late=0.2, late_s=6.0)


def test_late_requests_never_reach_another_transaction_of_kip_890() -> None:
    """T9: delayed EndTxn and writes, across transactions."""
    for seed in range(FIRST_SEED, FIRST_SEED + max(1, SEEDS // 5)):
        run("transactions", seed, generation=2, faults=late_requests())


def test_a_late_end_breaks_a_later_transaction_of_kip_98_and_is_seen() -> None:
    """T9: what the first generation cannot tell apart, in Kafka either."""

    def runs() -> None:
        for seed in range(1, 200):
            run("transactions", seed, generation=1, faults=late_requests())

    with pytest.raises(SimulationFailure, match=r"never committed|torn|not all of it"):
        runs()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_seed_gives_the_same_run_in_another_process(kind: str) -> None:
    """Whatever the order of Python's hashes is."""
    command = [sys.executable, "-m", "tests.simulation", "--kind", kind, "--seed", "7", "--seeds", "2"]
    outputs = [
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        ).stdout
        for hash_seed in ("1", "2")
    ]
    traces = {output.rpartition("traces ")[2] for output in outputs}
    assert len(traces) == 1, outputs
