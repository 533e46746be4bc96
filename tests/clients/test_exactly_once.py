"""T4, T11, T12: exactly-once copies by processes of real clients, while they and the broker are killed, are exact.

Histories of all of them, with a plain writer and a plain group beside the copies, are held to `compat.checker`; so are
those of share groups, whose ledger has to come out even. The broker syncs always, which is the default. BARNABAS_KILLS
sets how many kills there are of the broker and as many of clients (3 in CI; half as many for share groups);
BARNABAS_SEED replays victims and moments.
"""

from __future__ import annotations

import os
import random
import shutil

import pytest

from compat.exactly_once.run import BROKER, Run
from compat.exactly_once.share_run import SHARE_BROKER, ShareRun

KILLS = int(os.environ.get("BARNABAS_KILLS", "3"))
SEED = int(os.environ.get("BARNABAS_SEED", str(random.SystemRandom().randrange(2**32))))
RATE = 120
"""Records per second that go in."""
HAS_JDK = shutil.which("javac") and shutil.which("mvn")
JAVA = [pytest.mark.java, pytest.mark.skipif(not HAS_JDK, reason="needs a JDK and Maven")]


CLIENTS = pytest.mark.parametrize("client", ["confluent", pytest.param("java", marks=JAVA)])
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 + 20 * KILLS)]


@CLIENTS
def test_a_copy_is_exact_whoever_is_killed(start_broker, tmp_path, client):
    hold(Run(start_broker(config=dict(BROKER)), client, tmp_path, SEED, RATE), KILLS)


@CLIENTS
def test_every_record_of_a_share_group_ends_once_whoever_is_killed(start_broker, tmp_path, client):
    hold(ShareRun(start_broker(config=dict(SHARE_BROKER)), client, tmp_path, SEED, RATE), (KILLS + 1) // 2)


def hold(run, kills):
    print(f"replay with BARNABAS_SEED={SEED} BARNABAS_KILLS={KILLS}")
    outcome = run(kills, kills)
    print(outcome)
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.records > 0
    assert (outcome.broker_kills, outcome.client_kills) == (kills, kills)
