"""Changes of ACLs over the wire."""

from __future__ import annotations

from typing import Any

from barnabas.wire.messages.security import acls as a
from barnabas.wire.principal import KafkaPrincipal
from tests.support.memory.broker import Client, MemoryBroker

ALICE = KafkaPrincipal("User", "alice")


ANY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def create(client: Client, *creations: a.AclCreation) -> list[tuple[int, str | None]]:
    response = client.ask(a.CreateAclsRequest(creations=list(creations)), 3, a.CreateAclsResponse)
    return [(result.error_code, result.error_message) for result in response.results]


def delete(client: Client, **chosen: Any) -> a.DeleteAclsFilterResult:
    request = a.DeleteAclsRequest(filters=[a.DeleteAclsFilter(**{**ANY, **chosen})])
    client.send(request, 3)
    client.memory.advance(0.1)  # its response is encoded in steps
    (response,) = client.answers()
    assert isinstance(response, a.DeleteAclsResponse)
    return response.filter_results[0]


def as_alice(memory: MemoryBroker) -> Client:
    client = memory.client()
    client.connection.principal = ALICE
    return client
