"""What the broker's log says of the typical mistakes of clients: one clear sentence, and no secret.

The lines are limited for an address, so these tests have a broker of their own and make each mistake once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cases import for_each
from tests.support.processes.commands import run_command
from tests.support.processes.secured import Secured
from tests.support.security.certificates import YESTERDAY, Authority
from tests.support.waiting import wait_for

WAIT_S = 30.0
SECRET = "wrong-secret-of-the-test"
ALICE = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "alice-secret"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured_broker = Secured(tmp_path_factory.mktemp("told"), "barnabas")
    with secured_broker.server:
        yield secured_broker


def logged(broker: Secured, tmp_path: Path, to: str, properties: dict[str, str], *command: str) -> str:
    """Run a command that is refused; the broker's lines about it."""
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    before = len(broker.server.log())
    arguments = command or ("topic", "list")
    ran = run_command(*arguments, "-b", broker.address(to), "--command-config", str(path), stdin="x\n")
    assert ran.code != 0
    # the client may know of it before the broker
    wait_for(lambda: "\n" in broker.server.log()[before:], "a line in the log")
    new = broker.server.log()[before:]
    assert SECRET not in new
    assert ALICE["sasl_password"] not in new
    return new


@for_each(
    ("protocol", "to", "words"),
    [
        ("PLAINTEXT", "SSL", "the client does not speak TLS: set security.protocol=SSL in it"),
        ("PLAINTEXT", "SASL_SSL", "the client does not speak TLS: set security.protocol=SASL_SSL in it"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "does not log in. Set security.protocol=SASL_PLAINTEXT in it"),
        ("SSL", "SASL_SSL", "does not log in. Set security.protocol=SASL_SSL in it, as the listener SASL_SSL has it"),
        ("SSL", "PLAINTEXT", "a TLS handshake was sent to a listener without TLS"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "tries to log in, which the listener does not have: set security.protocol=PLA"),
        ("SASL_SSL", "SSL", "tries to log in, which the listener does not have: set security.protocol=SSL in"),
    ],
)
def test_another_protocol_than_the_listener_has(
    broker: Secured, tmp_path: Path, protocol: str, to: str, words: str
) -> None:
    login = ALICE if protocol.startswith("SASL") else {}
    assert words in logged(broker, tmp_path, to, broker.properties(protocol, **login))


def test_log_ins_that_fail(broker: Secured, tmp_path: Path) -> None:
    wrong = broker.properties("SASL_SSL", **ALICE | {"sasl_password": SECRET})
    assert "(Authentication failed: Invalid username or password)" in logged(broker, tmp_path, "SASL_SSL", wrong)
    token = tmp_path / "token"
    token.write_text("not.a.token")
    bearer = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": token.as_uri()}
    lines = logged(broker, tmp_path, "SASL_SSL", broker.properties("SASL_SSL", **bearer))
    assert '({"status":"invalid_token"}: a token with a signature, where none is expected)' in lines


def test_certificates_that_are_not_accepted(broker: Secured, tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    shown = broker.properties("SSL", ssl_keystore_location=str(own))
    Authority("strangers").sign("mallory").write(own)
    assert "(SSL handshake failed): the certificate of the peer is not valid: it is not signed by a CA" in logged(
        broker, tmp_path, "SSL", shown
    )
    broker.authority.sign("carol", end=YESTERDAY).write(own)
    assert "the certificate of the peer is not valid: certificate has expired" in logged(broker, tmp_path, "SSL", shown)
    other = Authority("others").write(tmp_path / "other.pem")
    log_text = logged(broker, tmp_path, "SSL", {"security.protocol": "SSL", "ssl.truststore.location": other})
    assert "the peer does not trust the certificate of this node" in log_text


def test_what_no_acl_allows(broker: Secured, tmp_path: Path) -> None:
    alice = broker.properties("SASL_SSL", **ALICE)
    lines = logged(broker, tmp_path, "SASL_SSL", alice, "produce", "orders")
    assert "User:alice is Denied operation = " in lines
    options = ("-b", broker.address("SASL_SSL"), "--command-config", str(tmp_path / "client.properties"))
    assert "this user may write to no topic" in run_command("produce", "orders", *options, stdin="x\n").stderr
    own = {"bootstrap": broker.harness, "BARNABAS_COMMAND_CONFIG": broker.command_config}
    run_command("topic", "create", "orders", **own).ok()
    run_command("acl", "add", "topic", "orders", "--user", "alice", "--operation", "read", **own).ok()
    lines = logged(broker, tmp_path, "SASL_SSL", alice, "consume", "orders", "-g", "billing", "-e")
    assert (
        "User:alice is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = Group:LITERAL:billing" in lines
    )
