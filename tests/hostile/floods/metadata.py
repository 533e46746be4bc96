"""Things that requests make in the metadata: topics, ACLs, users, tokens, quotas, subscriptions; and pushed metrics."""

from __future__ import annotations

import zstandard

from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.quotas import AlterClientQuotasRequest
from barnabas.wire.messages.security.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.security.sasl import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.wire.messages.security.tokens import CreateDelegationTokenRequest
from barnabas.wire.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.hostile.floods.run import MB, Flood, Run
from tests.support.requests.otlp_writer import gauge, number, push
from tests.support.requests.quotas import alteration

LISTENER = ("SASL_SSL",)
ITEMS = 200
"""Things that one request makes."""
CLIENT_METRICS = 16
ZSTD = 4


def topics(run: Run) -> None:
    """Topics of a hundred partitions."""
    for at in run:
        created = [CreatableTopic(name=f"bomb-{at}", num_partitions=100, replication_factor=1)]
        run.ask(CreateTopicsRequest(topics=created, timeout_ms=30_000), 7)


def partitions(run: Run) -> None:
    """A topic with as many partitions as the number has room for."""
    for at in run:
        created = [CreatableTopic(name=f"huge-{at}", num_partitions=2**31 - 1 - at, replication_factor=1)]
        run.ask(CreateTopicsRequest(topics=created, timeout_ms=30_000), 7)


def acls(run: Run) -> None:
    """ACLs of topics that do not exist."""
    for at in run:
        creations = [
            AclCreation(
                resource_type=2, resource_name=f"topic-{at}-{index}", resource_pattern_type=3, principal="User:x",
                host="*", operation=3, permission_type=3,
            )
            for index in range(ITEMS)
        ]  # fmt: skip
        run.ask(CreateAclsRequest(creations=creations), 3)


def users(run: Run) -> None:
    """Users of SCRAM."""
    for at in run:
        upsertions = [
            ScramCredentialUpsertion(
                name=f"user-{at}-{index}", mechanism=1, iterations=4096, salt=bytes(20), salted_password=bytes(32)
            )
            for index in range(ITEMS)
        ]
        run.ask(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)


def tokens(run: Run) -> None:
    """Delegation tokens of one user."""
    for _ in run:
        run.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)


def quotas(run: Run) -> None:
    """Quotas of client ids that no client has."""
    for at in run:
        entries = [alteration({"client-id": f"id-{at}-{index}"}, {"producer_byte_rate": 1e9}) for index in range(ITEMS)]
        run.ask(AlterClientQuotasRequest(entries=entries), 1)


def subscriptions(run: Run) -> None:
    """Subscriptions of client metrics."""
    for at in run:
        configs = [IncrementalAlterConfigsRequestAlterableConfig(name="metrics", value="*", config_operation=0)]
        resources = [
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=CLIENT_METRICS, resource_name=f"subscription-{at}-{index}", configs=configs
            )
            for index in range(20)
        ]
        run.ask(IncrementalAlterConfigsRequest(resources=resources), 1)


def pushes(run: Run) -> None:
    """A push of 5,000 series of a client that is new with each step."""
    metrics = push([gauge("m", *(number(1.0, topic=f"{index:060}") for index in range(5_000)))])
    compressed = zstandard.compress(metrics)
    for _ in run:
        subscription = run.ask(GetTelemetrySubscriptionsRequest(), 0)
        request = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            compression_type=ZSTD,
            metrics=compressed,
        )
        run.ask(request, 0)


def instances(run: Run) -> None:
    """Clients that ask for their subscription under a new id each."""
    for _ in run:
        run.pipeline([(GetTelemetrySubscriptionsRequest(), 0)] * 50)


AUTHORIZED = {"authorizer.class.name": "barnabas", "super.users": "User:alice;User:admin"}
METRICS = {"barnabas.metrics.listener": "127.0.0.1:0"}
FLOODS = [
    Flood("topics of 100 partitions", topics, LISTENER, "barnabas.partitions.max", 10,
          {"barnabas.partitions.max": "2000"}),
    Flood("topics of 2 billion partitions", partitions, LISTENER, "10,000 partitions of a request", 10),
    Flood("ACLs", acls, LISTENER, "barnabas.acls.max", 4, AUTHORIZED | {"barnabas.acls.max": "10000"}),
    Flood("users of SCRAM", users, LISTENER, "barnabas.scram.credentials.max", 4,
          {"barnabas.scram.credentials.max": "10000"}),
    Flood("delegation tokens", tokens, LISTENER, "barnabas.delegation.tokens.of.owner.max", 20,
          {"delegation.token.secret.key": "secret"}),
    Flood("quotas of clients", quotas, LISTENER, "barnabas.client.quotas.max", 4,
          {"barnabas.client.quotas.max": "10000"}),
    Flood("subscriptions of client metrics", subscriptions, LISTENER, "barnabas.config.resources.max", 4,
          METRICS | {"barnabas.config.resources.max": "500"}),
    Flood("pushes of client metrics", pushes, LISTENER, "barnabas.client.metrics.max.bytes; telemetry.max.bytes", 2,
          METRICS, 250 * MB),
    Flood("clients that ask for subscriptions", instances, LISTENER, "a bounded cache", 10, METRICS),
]  # fmt: skip
