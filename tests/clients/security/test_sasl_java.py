"""Kafka's own tools 4.3.1 with SASL: delegation tokens, each mechanism of the Java client, and sessions that end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.clients.security.scram_users import add_scram
from tests.support.jvm.kafka_tools import Tools
from tests.support.memory.secure_broker import PLAIN_USERS
from tests.support.processes.server import BarnabasServer, Server

pytestmark = pytest.mark.jvm
PREFIX = "listener.name.plaintext."
PACKAGE = "org.apache.kafka.common.security"
MODULES = {"PLAIN": f"{PACKAGE}.plain.PlainLoginModule", "OAUTHBEARER": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"}
SESSION_S = 6
RECORDS_A_SECOND = 20


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker whose sessions are short, so that clients authenticate again while they work."""
    if request.config.getoption("--against") == "kafka":
        pytest.skip("Kafka's users of SCRAM are made when a directory is formatted")
    oauth = f'{MODULES["OAUTHBEARER"]} required unsecuredValidatorAllowableClockSkewMs="3000";'
    config = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{PREFIX}plain.sasl.jaas.config": PLAIN_USERS,
        f"{PREFIX}oauthbearer.sasl.jaas.config": oauth,
        "delegation.token.secret.key": "key-secret",
        "connections.max.reauth.ms": str(SESSION_S * 1000),
        "group.initial.rebalance.delay.ms": "0",
    }
    with BarnabasServer(tmp_path_factory.mktemp("sasl") / "broker", config=config) as server:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            add_scram(server, mechanism)
        yield server


@pytest.fixture(scope="module")
def tools(secured: Server) -> Tools:
    return Tools(secured.bootstrap)


def client_file(folder: Path, mechanism: str, options: str) -> Path:
    module = MODULES.get(mechanism, f"{PACKAGE}.scram.ScramLoginModule")
    path = folder / f"{mechanism}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={module} required {options};\n"
    )
    return path


ALICE = 'username="alice" password="alice-secret"'
LOGINS = {
    "PLAIN": ALICE,
    "SCRAM-SHA-256": ALICE,
    "SCRAM-SHA-512": ALICE,
    "OAUTHBEARER": 'unsecuredLoginStringClaim_sub="alice"',
}


def produce(tools: Tools, config: Path, topic: str, count: int, *options: object) -> None:
    """Write records with the verifiable producer, which must not lose one."""
    output = tools.run(
        "VerifiableProducer", "--topic", topic, "--max-messages", count, "--command-config", config, *options
    )
    summary = json.loads(output.splitlines()[-1])
    assert summary["name"] == "tool_data", output[-2000:]
    assert (summary["sent"], summary["acked"]) == (count, count)


def test_the_java_client_logs_in_again_while_it_writes(
    secured: Server, tools: Tools, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    """With each mechanism at the same time, for two sessions and a half.

    The producer repeats nothing, so that a lost connection would be seen. A client logs in again when 85 to 95 percent
    of a session are over: a session is so long that a busy machine does not take the rest.
    """
    count = int(2.5 * SESSION_S * RECORDS_A_SECOND)

    def write(mechanism: str) -> None:
        config = client_file(tmp_path, mechanism, LOGINS[mechanism])
        produce(tools, config, topic_name(mechanism), count, "--throughput", RECORDS_A_SECOND)

    with ThreadPoolExecutor(len(LOGINS)) as pool:
        runs = [pool.submit(write, mechanism) for mechanism in LOGINS]
    for run in runs:
        run.result()


def test_delegation_tokens(secured: Server, tools: Tools, tmp_path: Path, topic: str) -> None:
    alice = client_file(tmp_path, "PLAIN", ALICE)

    def token(*arguments: str, config: Path = alice, expected: int = 0) -> str:
        return str(tools.run("DelegationTokenCommand", "--command-config", config, *arguments, expected=expected))

    output = token("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:admin")
    match = re.search(r"^(\S{22}) +(\S+) +User:alice", output, re.MULTILINE)
    assert match is not None, output
    token_id, key = match.groups()
    by_token = client_file(tmp_path, "SCRAM-SHA-512", f'username="{token_id}" password="{key}" tokenauth="true"')
    produce(tools, by_token, topic, 10)
    assert token_id in token("--describe", "--owner-principal", "User:alice")
    assert token_id in token("--describe", "--owner-principal", "User:admin")
    assert token_id not in token("--describe", "--owner-principal", "User:bob")
    assert "Completed renew operation" in token("--renew", "--hmac", key, "--renew-time-period", "60000")
    refused = token("--describe", config=by_token, expected=1)
    assert "Delegation Token requests are not allowed" in refused
    assert "Completed expire operation" in token("--expire", "--hmac", key, "--expiry-time-period", "-1")
    assert token_id not in token("--describe", "--owner-principal", "User:alice")
    assert "-secret" not in secured.log()
