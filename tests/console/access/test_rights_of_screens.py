"""What the control channel of a broker can do is for users who may do as much by Kafka's protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.acls import Acl, create_acls
from barnabas.client.admin.cluster import allowed_operations
from barnabas.client.admin.users import set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.security.scram import credential
from barnabas.client.security.settings import security_from
from tests.support.console.running import RunningConsole, running_console
from tests.support.processes.secured import HARNESS_PASSWORD, HARNESS_USER, Secured


@pytest.fixture
def with_channel(secured: Secured, controlled: RunningConsole) -> Iterator[RunningConsole]:
    """A console of the secured broker, where people log in; the channel is another broker's, which does not matter."""
    login = {"sasl_username": HARNESS_USER, "sasl_password": HARNESS_PASSWORD}
    own = secured.properties("SASL_PLAINTEXT", sasl_mechanism="PLAIN", **login)
    with Cluster(secured.harness, security=security_from(own)) as cluster:
        assert {"ALTER", "CLUSTER_ACTION"} <= allowed_operations(cluster)
        for user in ("nora", "oscar"):
            set_credential(cluster, user, credential("SCRAM-SHA-512", f"{user}-secret", 4096))
        operations = ("DESCRIBE", "ALTER", "CLUSTER_ACTION")
        create_acls(
            cluster,
            [Acl("CLUSTER", "kafka-cluster", "LITERAL", "User:oscar", "*", name, "ALLOW") for name in operations],
        )
    with running_console(secured.address("SASL_PLAINTEXT"), control=controlled.settings.control) as console:
        yield console


def test_requests_and_lab_need_rights_on_the_cluster(with_channel: RunningConsole) -> None:
    for user, status in (("nora", 403), ("oscar", 200)):
        answer = with_channel.client.post("/api/login", json={"user": user, "password": f"{user}-secret"})
        headers = {"authorization": f"Bearer {answer.json()['token']}"}
        for path, right in (("/api/requests", "CLUSTER_ACTION"), ("/api/lab", "ALTER")):
            answer = with_channel.client.get(path, headers=headers)
            assert answer.status_code == status, answer.text
            assert status == 200 or right in answer.json()["error"]
        changed = with_channel.client.post("/api/lab/clock", json={"change": "resume"}, headers=headers)
        assert changed.status_code == status
    with_channel.client.cookies.clear()
