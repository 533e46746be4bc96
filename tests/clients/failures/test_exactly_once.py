"""T4, T11, T12: exactly-once copies by real clients stay exact while clients and broker are killed.

`compat.checker` checks the histories of all clients, including a plain producer and a plain group, and of share groups,
in which every record must be finished exactly once. The broker runs with `barnabas.log.sync=always`, the default.
BARNABAS_KILLS sets how often the broker and how often clients are killed (3 unless set; half as often in share groups);
BARNABAS_SEED repeats the choice of killed processes and times.
"""

from __future__ import annotations

import shutil

import pytest

from compat.exactly_once.run import BROKER, Run
from compat.exactly_once.share_run import SHARE_BROKER, ShareRun
from tests.support.volume import first_seed, how_many, replay

KILLS = how_many("BARNABAS_KILLS", 3)
SEED = first_seed()
RATE = 120
"""Records per second that go in."""
HAS_JDK = shutil.which("javac") and shutil.which("mvn")
JAVA = [pytest.mark.jvm, pytest.mark.skipif(not HAS_JDK, reason="needs a JDK and Maven")]


CLIENTS = pytest.mark.parametrize("client", ["confluent", pytest.param("java", marks=JAVA)])
pytestmark = [pytest.mark.soak, pytest.mark.timeout(240 + 20 * KILLS)]


@CLIENTS
def test_a_copy_is_exact_when_clients_and_broker_are_killed(start_broker, tmp_path, client, brokers):
    if client == "confluent" and brokers > 1:
        pytest.skip(
            "librdkafka's transactions may hang when all brokers are killed (compat/confluent_kafka/FINDINGS.md)"
        )
    run_and_check(Run(start_broker(config=dict(BROKER)), client, tmp_path, SEED, RATE), KILLS)


@CLIENTS
def test_every_share_group_record_ends_once_when_clients_and_broker_are_killed(start_broker, tmp_path, client):
    run_and_check(ShareRun(start_broker(config=dict(SHARE_BROKER)), client, tmp_path, SEED, RATE), (KILLS + 1) // 2)


def run_and_check(run, kills):
    print(replay("BARNABAS_KILLS", KILLS))
    outcome = run(kills, kills)
    print(outcome)
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.records > 0
    assert (outcome.broker_kills, outcome.client_kills) == (kills, kills)
