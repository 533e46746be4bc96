"""A request for each row of `scripts.pages.access_rules`: it needs what the row says, and no other case minds it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.messages import cluster as cl
from barnabas.wire.messages import configs as c
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import list_offsets as lo
from barnabas.wire.messages import log_dirs as ld
from barnabas.wire.messages import metadata as md
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import quotas as q
from barnabas.wire.messages import raft as r
from barnabas.wire.messages import replication as rp
from barnabas.wire.messages import topics as tp
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import consumer_groups as cg
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups import share_groups as sg
from barnabas.wire.messages.groups import share_state as ss
from barnabas.wire.messages.groups import streams_groups as st
from barnabas.wire.messages.security import acls as a
from barnabas.wire.messages.security import sasl as s
from barnabas.wire.messages.security import tokens as tk
from barnabas.wire.principal import KafkaPrincipal
from barnabas.wire.schema import Message
from tests.support.memory.broker import batch

TOPIC, GROUP, TXN = "orders", "the-group", "the-transaction"
OWNER = KafkaPrincipal("User", "the-owner")
TOPIC_CONFIGS, BROKER_CONFIGS, GROUP_CONFIGS = 2, 4, 32
_numbers = itertools.count()

Case = Callable[[bytes], tuple[Message, int]]
"""Makes a request, with its version; gets the id of the topic."""


def acl_creation(**fields: Any) -> a.AclCreation:
    values = {
        "resource_type": 2,
        "resource_name": "other",
        "resource_pattern_type": 3,
        "principal": "User:bob",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return a.AclCreation(**{**values, **fields})


def _acl_filter(kind: type[Any]) -> Any:
    return kind(
        resource_type_filter=2, resource_name_filter="nothing", pattern_type_filter=3, operation=1, permission_type=1
    )


def _produce(transactional_id: str | None = None) -> Case:
    options: dict[str, Any] = {}
    if transactional_id is not None:
        options = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}

    def case(_: bytes) -> tuple[Message, int]:
        data = p.PartitionProduceData(index=0, records=batch(b"x", **options))
        topic = p.TopicProduceData(name=TOPIC, partition_data=[data])
        return p.ProduceRequest(transactional_id=transactional_id, acks=1, timeout_ms=1, topic_data=[topic]), 9

    return case


def _fetch(replica_id: int) -> Case:
    def case(topic_id: bytes) -> tuple[Message, int]:
        partition = f.FetchRequestFetchPartition(partition=0, partition_max_bytes=1000)
        topic = f.FetchRequestFetchTopic(topic_id=topic_id, partitions=[partition])
        state = f.FetchRequestReplicaState(replica_id=replica_id)
        return f.FetchRequest(replica_state=state, max_bytes=1000, topics=[topic]), 15

    return case


def _metadata(**topic: Any) -> Case:
    return lambda _: (md.MetadataRequest(topics=[md.MetadataRequestTopic(**topic)]), 12)


def _creating(_: bytes) -> tuple[Message, int]:
    return md.MetadataRequest(topics=[md.MetadataRequestTopic(name=f"auto-{next(_numbers)}")]), 12


def _find(key_type: int, key: str) -> Case:
    return lambda _: (g.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 6)


def _commit(_: bytes) -> tuple[Message, int]:
    partition = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = o.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return o.OffsetCommitRequest(group_id="committing", generation_id_or_member_epoch=-1, topics=[topic]), 8


def _offset_fetch(group_id: str, topics: list[Any] | None) -> Case:
    return lambda _: (o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id=group_id, topics=topics)]), 8)


def _txn_commit(_: bytes) -> tuple[Message, int]:
    partition = t.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = t.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return t.TxnOffsetCommitRequest(transactional_id=TXN, group_id=GROUP, producer_id=1, topics=[topic]), 3


def _describe_configs(kind: int, name: str) -> Case:
    return lambda _: (
        c.DescribeConfigsRequest(resources=[c.DescribeConfigsResource(resource_type=kind, resource_name=name)]),
        4,
    )


def _alter_configs(kind: int, name: str) -> Case:
    resource = c.AlterConfigsRequestAlterConfigsResource(resource_type=kind, resource_name=name)
    return lambda _: (c.AlterConfigsRequest(resources=[resource], validate_only=True), 2)


def _increment_configs(kind: int, name: str) -> Case:
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=kind, resource_name=name)
    return lambda _: (c.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True), 1)


def _share_state(request: type[Any], data: type[Any], partition: type[Any]) -> Case:
    def case(topic_id: bytes) -> tuple[Message, int]:
        return request(group_id=GROUP, topics=[data(topic_id=topic_id, partitions=[partition(partition=0)])]), 0

    return case


def streams_heartbeat(group_id: str, member_id: str, member_epoch: int = 0) -> st.StreamsGroupHeartbeatRequest:
    part = st.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=[TOPIC])
    topology = st.StreamsGroupHeartbeatRequestTopology(epoch=1, subtopologies=[part])
    return st.StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        rebalance_timeout_ms=1000,
        topology=topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
        client_tags=[],
    )


def _share_fetch(topic_id: bytes) -> tuple[Message, int]:
    partition = sg.ShareFetchRequestFetchPartition(partition_index=0)
    topic = sg.ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=[partition])
    member = f"member-{next(_numbers)}"
    return sg.ShareFetchRequest(
        group_id="sharing", member_id=member, share_session_epoch=0, max_bytes=1000, max_records=10, topics=[topic]
    ), 1


def _topic_partitions(names: list[str]) -> Case:
    topics = [md.DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names]
    return lambda _: (md.DescribeTopicPartitionsRequest(topics=topics), 0)


_txn_topic = t.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
_txn = t.AddPartitionsToTxnTransaction(transactional_id=TXN, producer_id=1, topics=[_txn_topic])
_marker_topic = t.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
_new_topic = tp.CreatableTopic(name="new", num_partitions=1, replication_factor=1)

BROKER_CASES: dict[tuple[ApiKey, str], Case] = {
    (ApiKey.PRODUCE, ""): _produce(),
    (ApiKey.PRODUCE, "in a transaction"): _produce(TXN),
    (ApiKey.FETCH, "of consumers"): _fetch(-1),
    (ApiKey.FETCH, "of followers"): _fetch(7),
    (ApiKey.CREATE_DELEGATION_TOKEN, "of somebody else"): lambda _: (
        tk.CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name="somebody", max_lifetime_ms=-1
        ),
        3,
    ),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "of somebody else"): lambda _: (
        tk.DescribeDelegationTokenRequest(owners=None),
        3,
    ),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, ""): lambda _: (q.DescribeClientQuotasRequest(), 1),
    (ApiKey.ALTER_CLIENT_QUOTAS, ""): lambda _: (
        q.AlterClientQuotasRequest(
            entries=[
                q.AlterClientQuotasRequestEntryData(
                    entity=[q.AlterClientQuotasRequestEntityData(entity_type="user", entity_name="bob")],
                    ops=[q.OpData(key="producer_byte_rate", value=1e9)],
                )
            ]
        ),
        1,
    ),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ""): lambda _: (
        s.DescribeUserScramCredentialsRequest(users=None),
        0,
    ),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ""): lambda _: (
        s.AlterUserScramCredentialsRequest(deletions=[s.ScramCredentialDeletion(name="nobody", mechanism=1)]),
        0,
    ),
    (ApiKey.LIST_OFFSETS, ""): lambda _: (
        lo.ListOffsetsRequest(
            topics=[lo.ListOffsetsTopic(name=TOPIC, partitions=[lo.ListOffsetsPartition(timestamp=-1)])]
        ),
        7,
    ),
    (ApiKey.METADATA, "of topics by name"): _metadata(name=TOPIC),
    (ApiKey.METADATA, "of topics by id"): lambda topic_id: (
        md.MetadataRequest(topics=[md.MetadataRequestTopic(name=None, topic_id=topic_id)]),
        12,
    ),
    (ApiKey.METADATA, "of all topics"): lambda _: (md.MetadataRequest(topics=None), 12),
    (ApiKey.METADATA, "that creates a topic"): _creating,
    (ApiKey.OFFSET_COMMIT, ""): _commit,
    (ApiKey.OFFSET_FETCH, "of named topics"): _offset_fetch(
        GROUP, [o.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    ),
    (ApiKey.OFFSET_FETCH, "of all topics"): _offset_fetch(GROUP, None),
    (ApiKey.FIND_COORDINATOR, "of a group"): _find(0, GROUP),
    (ApiKey.FIND_COORDINATOR, "of a transactional id"): _find(1, TXN),
    (ApiKey.FIND_COORDINATOR, "of a share partition"): _find(2, f"{GROUP}:{'A' * 22}:0"),
    (ApiKey.JOIN_GROUP, ""): lambda _: (
        g.JoinGroupRequest(
            group_id="joining",
            session_timeout_ms=9000,
            rebalance_timeout_ms=9000,
            protocol_type="consumer",
            protocols=[g.JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        7,
    ),
    (ApiKey.HEARTBEAT, ""): lambda _: (g.HeartbeatRequest(group_id=GROUP), 4),
    (ApiKey.LEAVE_GROUP, ""): lambda _: (g.LeaveGroupRequest(group_id=GROUP, members=[g.MemberIdentity()]), 4),
    (ApiKey.SYNC_GROUP, ""): lambda _: (
        g.SyncGroupRequest(group_id=GROUP, protocol_type="consumer", protocol_name="range"),
        5,
    ),
    (ApiKey.DESCRIBE_GROUPS, ""): lambda _: (g.DescribeGroupsRequest(groups=[GROUP]), 5),
    (ApiKey.LIST_GROUPS, ""): lambda _: (g.ListGroupsRequest(), 4),
    (ApiKey.CREATE_TOPICS, ""): lambda _: (tp.CreateTopicsRequest(topics=[_new_topic], validate_only=True), 4),
    (ApiKey.CREATE_TOPICS, "configs in the response"): lambda _: (
        tp.CreateTopicsRequest(topics=[_new_topic], validate_only=True),
        7,
    ),
    (ApiKey.DELETE_TOPICS, ""): lambda _: (tp.DeleteTopicsRequest(topics=[tp.DeleteTopicState(name="nothing")]), 6),
    (ApiKey.DELETE_RECORDS, ""): lambda _: (
        tp.DeleteRecordsRequest(topics=[tp.DeleteRecordsTopic(name=TOPIC, partitions=[tp.DeleteRecordsPartition()])]),
        2,
    ),
    (ApiKey.INIT_PRODUCER_ID, "without a transactional id"): lambda _: (
        p.InitProducerIdRequest(transactional_id=None),
        4,
    ),
    (ApiKey.INIT_PRODUCER_ID, "with a transactional id"): lambda _: (
        p.InitProducerIdRequest(transactional_id=f"{TXN}-{next(_numbers)}", transaction_timeout_ms=1000),
        4,
    ),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, ""): lambda _: (
        lo.OffsetForLeaderEpochRequest(
            topics=[lo.OffsetForLeaderTopic(topic=TOPIC, partitions=[lo.OffsetForLeaderPartition()])]
        ),
        4,
    ),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "of producers"): lambda _: (
        t.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TXN, v3_and_below_producer_id=1, v3_and_below_topics=[_txn_topic]
        ),
        3,
    ),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "of brokers"): lambda _: (t.AddPartitionsToTxnRequest(transactions=[_txn]), 4),
    (ApiKey.ADD_OFFSETS_TO_TXN, ""): lambda _: (
        t.AddOffsetsToTxnRequest(transactional_id=TXN, producer_id=1, group_id=GROUP),
        3,
    ),
    (ApiKey.END_TXN, ""): lambda _: (t.EndTxnRequest(transactional_id=TXN, producer_id=1), 3),
    (ApiKey.WRITE_TXN_MARKERS, ""): lambda _: (
        t.WriteTxnMarkersRequest(markers=[t.WritableTxnMarker(producer_id=1, topics=[_marker_topic])]),
        1,
    ),
    (ApiKey.TXN_OFFSET_COMMIT, ""): _txn_commit,
    (ApiKey.DESCRIBE_ACLS, ""): lambda _: (_acl_filter(a.DescribeAclsRequest), 3),
    (ApiKey.CREATE_ACLS, ""): lambda _: (a.CreateAclsRequest(creations=[acl_creation()]), 3),
    (ApiKey.DELETE_ACLS, ""): lambda _: (a.DeleteAclsRequest(filters=[_acl_filter(a.DeleteAclsFilter)]), 3),
    (ApiKey.DESCRIBE_CONFIGS, "of a topic"): _describe_configs(TOPIC_CONFIGS, TOPIC),
    (ApiKey.DESCRIBE_CONFIGS, "of a group"): _describe_configs(GROUP_CONFIGS, GROUP),
    (ApiKey.DESCRIBE_CONFIGS, "of brokers, loggers, client metrics"): _describe_configs(BROKER_CONFIGS, ""),
    (ApiKey.ALTER_CONFIGS, "of a topic"): _alter_configs(TOPIC_CONFIGS, TOPIC),
    (ApiKey.ALTER_CONFIGS, "of a group"): _alter_configs(GROUP_CONFIGS, GROUP),
    (ApiKey.ALTER_CONFIGS, "of brokers, loggers, client metrics"): _alter_configs(BROKER_CONFIGS, ""),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, ""): lambda _: (
        ld.AlterReplicaLogDirsRequest(
            dirs=[ld.AlterReplicaLogDir(path="/x", topics=[ld.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])])]
        ),
        2,
    ),
    (ApiKey.DESCRIBE_LOG_DIRS, ""): lambda _: (ld.DescribeLogDirsRequest(topics=None), 4),
    (ApiKey.CREATE_PARTITIONS, ""): lambda _: (
        tp.CreatePartitionsRequest(
            topics=[tp.CreatePartitionsTopic(name=TOPIC, count=9, assignments=None)], validate_only=True
        ),
        3,
    ),
    (ApiKey.DELETE_GROUPS, ""): lambda _: (g.DeleteGroupsRequest(groups_names=["nothing"]), 2),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a topic"): _increment_configs(TOPIC_CONFIGS, TOPIC),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a group"): _increment_configs(GROUP_CONFIGS, GROUP),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of brokers, loggers, client metrics"): _increment_configs(8, "1"),
    (ApiKey.ELECT_LEADERS, ""): lambda _: (
        tp.ElectLeadersRequest(topic_partitions=[tp.ElectLeadersRequestTopicPartitions(topic=TOPIC, partitions=[0])]),
        0,
    ),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, ""): lambda _: (tp.AlterPartitionReassignmentsRequest(), 0),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, ""): lambda _: (tp.ListPartitionReassignmentsRequest(topics=None), 0),
    (ApiKey.OFFSET_DELETE, ""): lambda _: (
        o.OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                o.OffsetDeleteRequestTopic(name=TOPIC, partitions=[o.OffsetDeleteRequestPartition(partition_index=9)])
            ],
        ),
        0,
    ),
    (ApiKey.DESCRIBE_QUORUM, ""): lambda _: (
        r.DescribeQuorumRequest(
            topics=[
                r.DescribeQuorumRequestTopicData(
                    topic_name=CLUSTER_METADATA_TOPIC, partitions=[r.DescribeQuorumRequestPartitionData()]
                )
            ]
        ),
        2,
    ),
    (ApiKey.UPDATE_FEATURES, ""): lambda _: (cl.UpdateFeaturesRequest(validate_only=True), 1),
    (ApiKey.DESCRIBE_CLUSTER, ""): lambda _: (md.DescribeClusterRequest(endpoint_type=1), 1),
    (ApiKey.UNREGISTER_BROKER, ""): lambda _: (cl.UnregisterBrokerRequest(broker_id=77), 0),
    (ApiKey.DESCRIBE_PRODUCERS, ""): lambda _: (
        t.DescribeProducersRequest(topics=[t.DescribeProducersRequestTopicRequest(name=TOPIC, partition_indexes=[0])]),
        0,
    ),
    (ApiKey.DESCRIBE_TRANSACTIONS, ""): lambda _: (t.DescribeTransactionsRequest(transactional_ids=[TXN]), 0),
    (ApiKey.LIST_TRANSACTIONS, ""): lambda _: (t.ListTransactionsRequest(), 1),
    (ApiKey.LIST_CONFIG_RESOURCES, ""): lambda _: (c.ListConfigResourcesRequest(), 1),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of named topics"): _topic_partitions([TOPIC]),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of all topics"): _topic_partitions([]),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, ""): lambda _: (
        cg.ConsumerGroupHeartbeatRequest(
            group_id="consuming",
            member_id=f"member-{next(_numbers)}",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        ),
        1,
    ),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, ""): lambda _: (cg.ConsumerGroupDescribeRequest(group_ids=["consumers"]), 1),
    (ApiKey.SHARE_FETCH, ""): _share_fetch,
    (ApiKey.STREAMS_GROUP_HEARTBEAT, ""): lambda _: (streams_heartbeat("streaming", f"member-{next(_numbers)}"), 0),
    (ApiKey.STREAMS_GROUP_DESCRIBE, ""): lambda _: (st.StreamsGroupDescribeRequest(group_ids=["streams"]), 0),
    (ApiKey.SHARE_GROUP_HEARTBEAT, ""): lambda _: (
        sg.ShareGroupHeartbeatRequest(
            group_id="sharing", member_id=f"member-{next(_numbers)}", subscribed_topic_names=[TOPIC]
        ),
        1,
    ),
    (ApiKey.SHARE_GROUP_DESCRIBE, ""): lambda _: (sg.ShareGroupDescribeRequest(group_ids=["shares"]), 1),
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, ""): _share_state(
        ss.InitializeShareGroupStateRequest, ss.InitializeStateData, ss.InitializeShareGroupStateRequestPartitionData
    ),
    (ApiKey.READ_SHARE_GROUP_STATE, ""): _share_state(
        ss.ReadShareGroupStateRequest, ss.ReadStateData, ss.ReadShareGroupStateRequestPartitionData
    ),
    (ApiKey.WRITE_SHARE_GROUP_STATE, ""): _share_state(
        ss.WriteShareGroupStateRequest, ss.WriteStateData, ss.WriteShareGroupStateRequestPartitionData
    ),
    (ApiKey.DELETE_SHARE_GROUP_STATE, ""): _share_state(
        ss.DeleteShareGroupStateRequest, ss.DeleteStateData, ss.DeleteShareGroupStateRequestPartitionData
    ),
    (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ""): _share_state(
        ss.ReadShareGroupStateSummaryRequest, ss.ReadStateSummaryData, ss.ReadShareGroupStateSummaryRequestPartitionData
    ),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ""): lambda _: (
        sg.DescribeShareGroupOffsetsRequest(
            groups=[
                sg.DescribeShareGroupOffsetsRequestGroup(
                    group_id=GROUP,
                    topics=[sg.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])],
                )
            ]
        ),
        0,
    ),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ""): lambda _: (
        sg.AlterShareGroupOffsetsRequest(
            group_id="offsets",
            topics=[
                sg.AlterShareGroupOffsetsRequestTopic(
                    topic_name=TOPIC, partitions=[sg.AlterShareGroupOffsetsRequestPartition()]
                )
            ],
        ),
        0,
    ),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, ""): lambda _: (
        sg.DeleteShareGroupOffsetsRequest(
            group_id="empty-shares", topics=[sg.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)]
        ),
        0,
    ),
    (ApiKey.ADD_RAFT_VOTER, ""): lambda _: (r.AddRaftVoterRequest(), 0),
    (ApiKey.REMOVE_RAFT_VOTER, ""): lambda _: (r.RemoveRaftVoterRequest(), 0),
}
"""By API and case. ShareAcknowledge needs a session, and has a test of its own; SASL and ApiVersions need nothing."""


def _metadata_fetch(_: bytes) -> tuple[Message, int]:
    return f.FetchRequest(), 17


CONTROLLER_CASES: dict[tuple[ApiKey, str], Case] = {
    (ApiKey.FETCH, ""): _metadata_fetch,
    (ApiKey.FETCH_SNAPSHOT, ""): lambda _: (r.FetchSnapshotRequest(), 1),
    (ApiKey.ENVELOPE, ""): lambda _: (
        cl.EnvelopeRequest(
            request_data=b"", request_principal=KafkaPrincipal("User", "x").to_bytes(), client_host_address=bytes(4)
        ),
        0,
    ),
    (ApiKey.ALTER_PARTITION, ""): lambda _: (rp.AlterPartitionRequest(broker_id=9), 3),
    (ApiKey.BROKER_REGISTRATION, ""): lambda _: (cl.BrokerRegistrationRequest(broker_id=9), 4),
    (ApiKey.BROKER_HEARTBEAT, ""): lambda _: (cl.BrokerHeartbeatRequest(broker_id=9), 1),
    (ApiKey.ALLOCATE_PRODUCER_IDS, ""): lambda _: (cl.AllocateProducerIdsRequest(broker_id=9), 0),
    (ApiKey.ASSIGN_REPLICAS_TO_DIRS, ""): lambda _: (ld.AssignReplicasToDirsRequest(broker_id=9), 0),
    (ApiKey.UPDATE_RAFT_VOTER, ""): lambda _: (r.UpdateRaftVoterRequest(), 0),
    (ApiKey.DESCRIBE_CLUSTER, ""): lambda _: (md.DescribeClusterRequest(endpoint_type=2), 1),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of the controller's loggers"): _increment_configs(8, "3000"),
}
