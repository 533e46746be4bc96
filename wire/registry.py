"""Finds the declaration of a message by API key or name; a family's module is imported when it is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

FAMILIES: dict[int, tuple[str, str]] = {
    ApiKey.PRODUCE: ("produce", "Produce"),
    ApiKey.FETCH: ("fetch", "Fetch"),
    ApiKey.LIST_OFFSETS: ("list_offsets", "ListOffsets"),
    ApiKey.METADATA: ("metadata", "Metadata"),
    ApiKey.LEADER_AND_ISR: ("replication", "LeaderAndIsr"),
    ApiKey.STOP_REPLICA: ("replication", "StopReplica"),
    ApiKey.UPDATE_METADATA: ("replication", "UpdateMetadata"),
    ApiKey.CONTROLLED_SHUTDOWN: ("cluster", "ControlledShutdown"),
    ApiKey.OFFSET_COMMIT: ("groups.offsets", "OffsetCommit"),
    ApiKey.OFFSET_FETCH: ("groups.offsets", "OffsetFetch"),
    ApiKey.FIND_COORDINATOR: ("groups.classic_groups", "FindCoordinator"),
    ApiKey.JOIN_GROUP: ("groups.classic_groups", "JoinGroup"),
    ApiKey.HEARTBEAT: ("groups.classic_groups", "Heartbeat"),
    ApiKey.LEAVE_GROUP: ("groups.classic_groups", "LeaveGroup"),
    ApiKey.SYNC_GROUP: ("groups.classic_groups", "SyncGroup"),
    ApiKey.DESCRIBE_GROUPS: ("groups.classic_groups", "DescribeGroups"),
    ApiKey.LIST_GROUPS: ("groups.classic_groups", "ListGroups"),
    ApiKey.SASL_HANDSHAKE: ("security.sasl", "SaslHandshake"),
    ApiKey.API_VERSIONS: ("api_versions", "ApiVersions"),
    ApiKey.CREATE_TOPICS: ("topics", "CreateTopics"),
    ApiKey.DELETE_TOPICS: ("topics", "DeleteTopics"),
    ApiKey.DELETE_RECORDS: ("topics", "DeleteRecords"),
    ApiKey.INIT_PRODUCER_ID: ("produce", "InitProducerId"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("list_offsets", "OffsetForLeaderEpoch"),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("transactions", "AddPartitionsToTxn"),
    ApiKey.ADD_OFFSETS_TO_TXN: ("transactions", "AddOffsetsToTxn"),
    ApiKey.END_TXN: ("transactions", "EndTxn"),
    ApiKey.WRITE_TXN_MARKERS: ("transactions", "WriteTxnMarkers"),
    ApiKey.TXN_OFFSET_COMMIT: ("transactions", "TxnOffsetCommit"),
    ApiKey.DESCRIBE_ACLS: ("security.acls", "DescribeAcls"),
    ApiKey.CREATE_ACLS: ("security.acls", "CreateAcls"),
    ApiKey.DELETE_ACLS: ("security.acls", "DeleteAcls"),
    ApiKey.DESCRIBE_CONFIGS: ("configs", "DescribeConfigs"),
    ApiKey.ALTER_CONFIGS: ("configs", "AlterConfigs"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ("log_dirs", "AlterReplicaLogDirs"),
    ApiKey.DESCRIBE_LOG_DIRS: ("log_dirs", "DescribeLogDirs"),
    ApiKey.SASL_AUTHENTICATE: ("security.sasl", "SaslAuthenticate"),
    ApiKey.CREATE_PARTITIONS: ("topics", "CreatePartitions"),
    ApiKey.CREATE_DELEGATION_TOKEN: ("security.tokens", "CreateDelegationToken"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("security.tokens", "RenewDelegationToken"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("security.tokens", "ExpireDelegationToken"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ("security.tokens", "DescribeDelegationToken"),
    ApiKey.DELETE_GROUPS: ("groups.classic_groups", "DeleteGroups"),
    ApiKey.ELECT_LEADERS: ("topics", "ElectLeaders"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("configs", "IncrementalAlterConfigs"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("topics", "AlterPartitionReassignments"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("topics", "ListPartitionReassignments"),
    ApiKey.OFFSET_DELETE: ("groups.offsets", "OffsetDelete"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ("quotas", "DescribeClientQuotas"),
    ApiKey.ALTER_CLIENT_QUOTAS: ("quotas", "AlterClientQuotas"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ("security.sasl", "DescribeUserScramCredentials"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("security.sasl", "AlterUserScramCredentials"),
    ApiKey.VOTE: ("raft", "Vote"),
    ApiKey.BEGIN_QUORUM_EPOCH: ("raft", "BeginQuorumEpoch"),
    ApiKey.END_QUORUM_EPOCH: ("raft", "EndQuorumEpoch"),
    ApiKey.DESCRIBE_QUORUM: ("raft", "DescribeQuorum"),
    ApiKey.ALTER_PARTITION: ("replication", "AlterPartition"),
    ApiKey.UPDATE_FEATURES: ("cluster", "UpdateFeatures"),
    ApiKey.ENVELOPE: ("cluster", "Envelope"),
    ApiKey.FETCH_SNAPSHOT: ("raft", "FetchSnapshot"),
    ApiKey.DESCRIBE_CLUSTER: ("metadata", "DescribeCluster"),
    ApiKey.DESCRIBE_PRODUCERS: ("transactions", "DescribeProducers"),
    ApiKey.BROKER_REGISTRATION: ("cluster", "BrokerRegistration"),
    ApiKey.BROKER_HEARTBEAT: ("cluster", "BrokerHeartbeat"),
    ApiKey.UNREGISTER_BROKER: ("cluster", "UnregisterBroker"),
    ApiKey.DESCRIBE_TRANSACTIONS: ("transactions", "DescribeTransactions"),
    ApiKey.LIST_TRANSACTIONS: ("transactions", "ListTransactions"),
    ApiKey.ALLOCATE_PRODUCER_IDS: ("cluster", "AllocateProducerIds"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("groups.consumer_groups", "ConsumerGroupHeartbeat"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("groups.consumer_groups", "ConsumerGroupDescribe"),
    ApiKey.CONTROLLER_REGISTRATION: ("cluster", "ControllerRegistration"),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ("telemetry", "GetTelemetrySubscriptions"),
    ApiKey.PUSH_TELEMETRY: ("telemetry", "PushTelemetry"),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ("log_dirs", "AssignReplicasToDirs"),
    ApiKey.LIST_CONFIG_RESOURCES: ("configs", "ListConfigResources"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("metadata", "DescribeTopicPartitions"),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("groups.share_groups", "ShareGroupHeartbeat"),
    ApiKey.SHARE_GROUP_DESCRIBE: ("groups.share_groups", "ShareGroupDescribe"),
    ApiKey.SHARE_FETCH: ("groups.share_groups", "ShareFetch"),
    ApiKey.SHARE_ACKNOWLEDGE: ("groups.share_groups", "ShareAcknowledge"),
    ApiKey.ADD_RAFT_VOTER: ("raft", "AddRaftVoter"),
    ApiKey.REMOVE_RAFT_VOTER: ("raft", "RemoveRaftVoter"),
    ApiKey.UPDATE_RAFT_VOTER: ("raft", "UpdateRaftVoter"),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ("groups.share_state", "InitializeShareGroupState"),
    ApiKey.READ_SHARE_GROUP_STATE: ("groups.share_state", "ReadShareGroupState"),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("groups.share_state", "WriteShareGroupState"),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("groups.share_state", "DeleteShareGroupState"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ("groups.share_state", "ReadShareGroupStateSummary"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ("groups.streams_groups", "StreamsGroupHeartbeat"),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("groups.streams_groups", "StreamsGroupDescribe"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("groups.share_groups", "DescribeShareGroupOffsets"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("groups.share_groups", "AlterShareGroupOffsets"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("groups.share_groups", "DeleteShareGroupOffsets"),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (
        "groups.streams_groups",
        "StreamsGroupTopologyDescriptionUpdate",
    ),
    ApiKey.UNREGISTER_CONTROLLER: ("cluster", "UnregisterController"),
}
"""API key to module and name; the classes are `<name>Request` and `<name>Response`."""

MODULES = (
    "api_versions", "cluster", "configs", "fetch", "groups.classic_groups", "groups.consumer_groups",
    "groups.consumer_protocol", "groups.offsets", "groups.share_groups", "groups.share_state",
    "groups.streams_groups", "headers", "list_offsets", "log_dirs", "metadata", "produce", "quotas", "raft",
    "records.coordinator_records", "records.log_records", "records.metadata_records", "records.raft_records",
    "replication", "security.acls", "security.sasl", "security.tokens", "telemetry", "topics", "transactions",
)  # fmt: skip
"""Every module under `wire.messages`."""


@cache
def message_for(api_key: int) -> tuple[type[Message], type[Message]]:
    """The request and the response class of an API. ProtocolError for an unknown API."""
    family = FAMILIES.get(api_key)
    if family is None:
        raise ProtocolError(f"unknown API key {api_key}")
    module = import_module(f"barnabas.wire.messages.{family[0]}")
    request: type[Message] = getattr(module, f"{family[1]}Request")
    response: type[Message] = getattr(module, f"{family[1]}Response")
    return request, response


@cache
def all_messages() -> dict[str, type[Message]]:
    """All messages by Kafka's name (`ProduceRequest`), in alphabetical order. Imports every family."""
    from barnabas.wire.schema import Message

    messages = {}
    for name in MODULES:
        for value in vars(import_module(f"barnabas.wire.messages.{name}")).values():
            if isinstance(value, type) and issubclass(value, Message) and value is not Message:
                messages[value.__name__] = value
    return dict(sorted(messages.items()))


def message_named(name: str) -> type[Message]:
    """The message with Kafka's name, also with the suffix `Data` of Kafka's classes. KeyError when unknown."""
    messages = all_messages()
    return messages[name] if name in messages else messages[name.removesuffix("Data")]
