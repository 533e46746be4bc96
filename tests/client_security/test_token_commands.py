"""`barnabas token`: a token lets its holder in, until it has ended. Only its creation shows the HMAC."""

from __future__ import annotations

import pytest

from tests.support.processes.commands import Ran, run_command


@pytest.fixture
def alice(secured, config_file):
    """`alice("token", "list")` as the user alice."""
    more = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "alice-secret"}
    file = config_file(secured.properties("SASL_SSL", **more))

    def run(*arguments: str) -> Ran:
        return run_command(*arguments, "-b", secured.address("SASL_SSL"), "--command-config", file)

    return run


def log_in(secured, tmp_path, token_id: str, hmac: str) -> Ran:
    login = f'x.ScramLoginModule required username="{token_id}" password="{hmac}" tokenauth="true";'
    properties = secured.properties("SASL_SSL", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=login)
    path = tmp_path / "token.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return run_command("cluster", "info", "-b", secured.address("SASL_SSL"), "--command-config", str(path))


def test_a_token_is_created_used_renewed_and_ended(secured, alice, tmp_path) -> None:
    created = alice("token", "create", "--renewer", "bob", "--max-lifetime", "2h", "-o", "json").ok().json
    assert (created["owner"], created["renewers"]) == ("User:alice", ["User:bob"])
    assert log_in(secured, tmp_path, created["token_id"], created["hmac"]).code == 0

    listed = alice("token", "list", "-o", "json").ok()
    (row,) = [row_of for row_of in listed.json if row_of["token_id"] == created["token_id"]]
    assert (row["owner"], row["expiry"]) == ("User:alice", created["expiry"])
    assert created["hmac"] not in listed.stdout
    assert alice("token", "list", "--owner", "nobody-else", "-o", "json").ok().json == []

    renewed = alice("token", "renew", created["token_id"], "--for", "90m").ok()
    expiry = renewed.stdout.split()[-1]
    assert renewed.stdout.startswith(f"token {created['token_id']} expires at ")
    assert created["expiry"] > expiry, "until the max_time, which is later than in 90 minutes"

    refused = alice("token", "expire", created["token_id"])
    assert (refused.code, "confirm it with -y" in refused.stderr) == (2, True)
    assert log_in(secured, tmp_path, created["token_id"], created["hmac"]).code == 0
    assert alice("token", "expire", created["token_id"], "-y").ok().stdout == f"token {created['token_id']} has ended\n"
    refused = log_in(secured, tmp_path, created["token_id"], created["hmac"])
    assert refused.code == 5
    assert created["hmac"] not in refused.stderr
    gone = alice("token", "renew", created["token_id"])
    assert (gone.code, "there is no token" in gone.stderr) == (3, True)


def test_a_client_without_a_log_in_is_refused(secured) -> None:
    ran = run_command("token", "create", bootstrap=secured.address("PLAINTEXT"))
    assert (ran.code, "it needs a login over TLS or SASL" in ran.stderr) == (1, True), ran.stderr
