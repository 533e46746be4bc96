"""Users with SCRAM credentials."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.processes.server import Server

WAIT_S = 60.0


def add_scram(server: Server, mechanism: str) -> None:
    """Make the user alice, as an administrator."""
    admin = AdminClient(login(server, "PLAIN", "admin", "admin-secret"))
    info = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], 4096)
    upsertion = UserScramCredentialUpsertion("alice", info, b"alice-secret")
    admin.alter_user_scram_credentials([upsertion])["alice"].result(WAIT_S)


def login(server: Server, mechanism: str, name: str = "alice", password: str = "alice-secret", **more: Any) -> dict:
    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        **more,
    }
