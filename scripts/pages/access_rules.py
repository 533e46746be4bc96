"""The permissions that each request needs, and the error without them. A table of a generated page.

A test sends the requests of every row, with and without each of its needs. Source: Kafka 4.4 `KafkaApis`,
`ControllerApis`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode

Option = tuple[Operation, ResourceType]

HIDDEN: Final = None
"""There is no error: resources that may not be described are left out."""


class Need(NamedTuple):
    """Something that a request must be allowed to do: one of the options."""

    options: tuple[Option, ...]
    error: ErrorCode | None


class Rule(NamedTuple):
    """The needs of a request, all of them."""

    api: ApiKey
    case: str
    """Which requests of the API; empty: all."""
    needs: tuple[Need, ...]


_ERRORS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def _need(*options: Option) -> Need:
    """A need with the error of the last option's resource."""
    return Need(options, _ERRORS[options[-1][1]])


def _on(resource_type: ResourceType, *operations: Operation) -> tuple[Option, ...]:
    return tuple((operation, resource_type) for operation in operations)


_T, _G, _C, _X = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
_U: Final = ResourceType.USER
_O: Final = Operation
_READ_TOPIC: Final = _need((_O.READ, _T))
_WRITE_TOPIC: Final = _need((_O.WRITE, _T))
_DESCRIBE_TOPIC: Final = _need((_O.DESCRIBE, _T))
_READ_GROUP: Final = _need((_O.READ, _G))
_DESCRIBE_GROUP: Final = _need((_O.DESCRIBE, _G))
_DELETE_GROUP: Final = _need((_O.DELETE, _G))
_WRITE_ID: Final = _need((_O.WRITE, _X))
_DESCRIBE_ID: Final = _need((_O.DESCRIBE, _X))
_ALTER: Final = _need((_O.ALTER, _C))
_DESCRIBE: Final = _need((_O.DESCRIBE, _C))
_CLUSTER_ACTION: Final = _need((_O.CLUSTER_ACTION, _C))
_CREATE_TOPIC: Final = _need((_O.CREATE, _C), (_O.CREATE, _T))
_NOTHING: Final[tuple[Need, ...]] = ()


def _configs(api: ApiKey, operation: Operation) -> tuple[Rule, ...]:
    """The rules of configs of each kind of resource."""
    return (
        Rule(api, "of a topic", (_need((operation, _T)),)),
        Rule(api, "of a group", (_need((operation, _G)),)),
        Rule(api, "of brokers, loggers, client metrics", (_need((operation, _C)),)),
    )


BROKER_RULES: Final[tuple[Rule, ...]] = (
    Rule(ApiKey.PRODUCE, "", (_WRITE_TOPIC,)),
    Rule(ApiKey.PRODUCE, "in a transaction", (_WRITE_ID, _WRITE_TOPIC)),
    Rule(ApiKey.FETCH, "of consumers", (_READ_TOPIC,)),
    Rule(
        ApiKey.FETCH,
        "of followers",
        (Need(_on(_C, _O.CLUSTER_ACTION), ErrorCode.TOPIC_AUTHORIZATION_FAILED),),
    ),
    Rule(ApiKey.LIST_OFFSETS, "", (_DESCRIBE_TOPIC,)),
    Rule(ApiKey.METADATA, "of topics by name", (_DESCRIBE_TOPIC,)),
    Rule(ApiKey.METADATA, "of topics by id", (_DESCRIBE_TOPIC,)),
    Rule(ApiKey.METADATA, "of all topics", (Need(_on(_T, _O.DESCRIBE), HIDDEN),)),
    Rule(ApiKey.METADATA, "that creates a topic", (_DESCRIBE_TOPIC, _CREATE_TOPIC)),
    Rule(ApiKey.OFFSET_COMMIT, "", (_READ_GROUP, _READ_TOPIC)),
    Rule(ApiKey.OFFSET_FETCH, "of named topics", (_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.OFFSET_FETCH, "of all topics", (_DESCRIBE_GROUP, Need(_on(_T, _O.DESCRIBE), HIDDEN))),
    Rule(ApiKey.FIND_COORDINATOR, "of a group", (_DESCRIBE_GROUP,)),
    Rule(ApiKey.FIND_COORDINATOR, "of a transactional id", (_DESCRIBE_ID,)),
    Rule(ApiKey.FIND_COORDINATOR, "of a share partition", (_CLUSTER_ACTION,)),
    Rule(ApiKey.JOIN_GROUP, "", (_READ_GROUP,)),
    Rule(ApiKey.HEARTBEAT, "", (_READ_GROUP,)),
    Rule(ApiKey.LEAVE_GROUP, "", (_READ_GROUP,)),
    Rule(ApiKey.SYNC_GROUP, "", (_READ_GROUP,)),
    Rule(ApiKey.DESCRIBE_GROUPS, "", (_DESCRIBE_GROUP,)),
    Rule(ApiKey.LIST_GROUPS, "", (Need(((_O.DESCRIBE, _C), (_O.DESCRIBE, _G)), HIDDEN),)),
    Rule(ApiKey.SASL_HANDSHAKE, "", _NOTHING),
    Rule(ApiKey.API_VERSIONS, "", _NOTHING),
    Rule(ApiKey.CREATE_TOPICS, "", (_CREATE_TOPIC,)),
    Rule(ApiKey.CREATE_TOPICS, "configs in the response", (_CREATE_TOPIC, _need((_O.DESCRIBE_CONFIGS, _T)))),
    Rule(ApiKey.DELETE_TOPICS, "", (_need((_O.DELETE, _C), (_O.DELETE, _T)),)),
    Rule(ApiKey.DELETE_RECORDS, "", (_need((_O.DELETE, _T)),)),
    Rule(
        ApiKey.INIT_PRODUCER_ID,
        "without a transactional id",
        (Need(((_O.IDEMPOTENT_WRITE, _C), (_O.WRITE, _T)), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),),
    ),
    Rule(ApiKey.INIT_PRODUCER_ID, "with a transactional id", (_WRITE_ID,)),
    Rule(ApiKey.OFFSET_FOR_LEADER_EPOCH, "", (_need((_O.CLUSTER_ACTION, _C), (_O.DESCRIBE, _T)),)),
    Rule(ApiKey.ADD_PARTITIONS_TO_TXN, "of producers", (_WRITE_ID, _WRITE_TOPIC)),
    Rule(ApiKey.ADD_PARTITIONS_TO_TXN, "of brokers", (_CLUSTER_ACTION,)),
    Rule(ApiKey.ADD_OFFSETS_TO_TXN, "", (_WRITE_ID, _READ_GROUP)),
    Rule(ApiKey.END_TXN, "", (_WRITE_ID,)),
    Rule(ApiKey.WRITE_TXN_MARKERS, "", (_need((_O.ALTER, _C), (_O.CLUSTER_ACTION, _C)),)),
    Rule(ApiKey.TXN_OFFSET_COMMIT, "", (_WRITE_ID, _READ_GROUP, _READ_TOPIC)),
    Rule(ApiKey.DESCRIBE_ACLS, "", (_DESCRIBE,)),
    Rule(ApiKey.CREATE_ACLS, "", (_ALTER,)),
    Rule(ApiKey.DELETE_ACLS, "", (_ALTER,)),
    *_configs(ApiKey.DESCRIBE_CONFIGS, _O.DESCRIBE_CONFIGS),
    *_configs(ApiKey.ALTER_CONFIGS, _O.ALTER_CONFIGS),
    Rule(ApiKey.ALTER_REPLICA_LOG_DIRS, "", (_ALTER,)),
    Rule(ApiKey.DESCRIBE_LOG_DIRS, "", (_DESCRIBE,)),
    Rule(ApiKey.SASL_AUTHENTICATE, "", _NOTHING),
    Rule(ApiKey.CREATE_PARTITIONS, "", (_need((_O.ALTER, _T)),)),
    Rule(ApiKey.DELETE_GROUPS, "", (_DELETE_GROUP,)),
    *_configs(ApiKey.INCREMENTAL_ALTER_CONFIGS, _O.ALTER_CONFIGS),
    Rule(ApiKey.ELECT_LEADERS, "", (_ALTER,)),
    Rule(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "", (_ALTER,)),
    Rule(ApiKey.LIST_PARTITION_REASSIGNMENTS, "", (_DESCRIBE,)),
    Rule(ApiKey.OFFSET_DELETE, "", (_DELETE_GROUP, _READ_TOPIC)),
    Rule(ApiKey.DESCRIBE_QUORUM, "", (_DESCRIBE,)),
    Rule(ApiKey.UPDATE_FEATURES, "", (_ALTER,)),
    Rule(ApiKey.DESCRIBE_CLUSTER, "", _NOTHING),
    Rule(ApiKey.UNREGISTER_BROKER, "", (_ALTER,)),
    Rule(ApiKey.CREATE_DELEGATION_TOKEN, "of oneself", _NOTHING),
    Rule(
        ApiKey.CREATE_DELEGATION_TOKEN,
        "of somebody else",
        (Need(_on(_U, _O.CREATE_TOKENS), ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),),
    ),
    Rule(ApiKey.RENEW_DELEGATION_TOKEN, "by its owner or a renewer", _NOTHING),
    Rule(ApiKey.EXPIRE_DELEGATION_TOKEN, "by its owner or a renewer", _NOTHING),
    Rule(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        "of somebody else",
        (Need(((_O.DESCRIBE, ResourceType.DELEGATION_TOKEN), (_O.DESCRIBE_TOKENS, _U)), HIDDEN),),
    ),
    Rule(ApiKey.DESCRIBE_CLIENT_QUOTAS, "", (_need((_O.DESCRIBE_CONFIGS, _C)),)),
    Rule(ApiKey.ALTER_CLIENT_QUOTAS, "", (_need((_O.ALTER_CONFIGS, _C)),)),
    Rule(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "", (_DESCRIBE,)),
    Rule(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "", (_ALTER,)),
    Rule(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "", _NOTHING),
    Rule(ApiKey.PUSH_TELEMETRY, "", _NOTHING),
    Rule(ApiKey.DESCRIBE_PRODUCERS, "", (_READ_TOPIC,)),
    Rule(ApiKey.DESCRIBE_TRANSACTIONS, "", (_DESCRIBE_ID,)),
    Rule(ApiKey.LIST_TRANSACTIONS, "", (Need(_on(_X, _O.DESCRIBE), HIDDEN),)),
    Rule(ApiKey.LIST_CONFIG_RESOURCES, "", (_need((_O.DESCRIBE_CONFIGS, _C)),)),
    Rule(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of named topics", (_DESCRIBE_TOPIC,)),
    Rule(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of all topics", (Need(_on(_T, _O.DESCRIBE), HIDDEN),)),
    Rule(ApiKey.CONSUMER_GROUP_HEARTBEAT, "", (_READ_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.CONSUMER_GROUP_DESCRIBE, "", (_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.SHARE_FETCH, "", (_READ_GROUP, _READ_TOPIC)),
    Rule(ApiKey.SHARE_ACKNOWLEDGE, "", (_READ_GROUP, _READ_TOPIC)),
    Rule(ApiKey.STREAMS_GROUP_HEARTBEAT, "", (_READ_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.STREAMS_GROUP_DESCRIBE, "", (_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.SHARE_GROUP_HEARTBEAT, "", (_READ_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.SHARE_GROUP_DESCRIBE, "", (_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.READ_SHARE_GROUP_STATE, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.WRITE_SHARE_GROUP_STATE, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.DELETE_SHARE_GROUP_STATE, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "", (_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    Rule(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "", (_READ_GROUP, _READ_TOPIC)),
    Rule(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "", (_DELETE_GROUP, _READ_TOPIC)),
    Rule(ApiKey.ADD_RAFT_VOTER, "", (_ALTER,)),
    Rule(ApiKey.REMOVE_RAFT_VOTER, "", (_ALTER,)),
)
"""The requests on the listeners of brokers."""

CONTROLLER_RULES: Final[tuple[Rule, ...]] = (
    Rule(ApiKey.FETCH, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.FETCH_SNAPSHOT, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.ENVELOPE, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.ALTER_PARTITION, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.BROKER_REGISTRATION, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.BROKER_HEARTBEAT, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.ALLOCATE_PRODUCER_IDS, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.ASSIGN_REPLICAS_TO_DIRS, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.UPDATE_RAFT_VOTER, "", (_CLUSTER_ACTION,)),
    Rule(ApiKey.DESCRIBE_CLUSTER, "", (_ALTER,)),
    Rule(ApiKey.INCREMENTAL_ALTER_CONFIGS, "of the controller's loggers", (_CLUSTER_ACTION,)),
)
"""The requests that have other rules on the listeners of controllers, or come only there."""


def rows(rules: tuple[Rule, ...]) -> Iterator[tuple[str, str, str]]:
    """(request, its need, the error without it): a row for each need."""
    for rule in rules:
        name = rule.api.name.title().replace("_", "")
        request = f"{name} {rule.case}".strip()
        if not rule.needs:
            yield request, "nothing", ""
        for need in rule.needs:
            options = " or ".join(f"{operation.name} on {resource.title}" for operation, resource in need.options)
            error = "none: left out" if need.error is None else need.error.name
            yield request, options, error
            request = ""
