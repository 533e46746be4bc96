"""The image: every record type, and its recovery from the log and from a snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.checkpoint import build_checkpoint, load_checkpoint
from barnabas.coord.cluster.metadata_log.image_records import image_records
from barnabas.coord.cluster.metadata_log.metadata_serde import RECORD_TYPES
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.cluster.node_records import allocate_producer_ids, election_records
from barnabas.coord.cluster.topic_image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    is_reserved_directory,
)
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.schema import Message
from tests.support.cases import for_each
from tests.support.controller.worlds import ControllerWorld, same
from tests.support.volume import how_many

EXAMPLES = how_many("BARNABAS_EXAMPLES", 20)
ID = b"\x01" * 16


def replayed(*records: Message) -> ClusterImage:
    image = ClusterImage()
    for record in records:
        replay_record(image, record, ClusterDelta())
    return image


def test_every_record_type_has_a_handler() -> None:
    """So that a type which Kafka adds later is not forgotten. A record may be refused for its content only."""
    ends_of_transactions = {m.EndTransactionRecord, m.AbortTransactionRecord}
    for declared in set(RECORD_TYPES.values()) - ends_of_transactions:
        try:
            replayed(declared())
        except UnknownMetadataError as error:
            message = str(error)
        else:
            message = ""
        assert "Unknown metadata record" not in message


def test_an_undeclared_record_type_is_refused() -> None:
    class Unheard(Message):
        pass

    with pytest.raises(UnknownMetadataError, match="Unknown metadata record Unheard"):
        replayed(Unheard())


@for_each(
    "records",
    [
        [m.TopicRecord(name="a", topic_id=ID), m.TopicRecord(name="a", topic_id=b"\x02" * 16)],
        [m.TopicRecord(name="a", topic_id=ID), m.TopicRecord(name="b", topic_id=ID)],
        [m.RemoveTopicRecord(topic_id=ID)],
        [m.PartitionRecord(topic_id=ID, partition_id=0)],
        [m.TopicRecord(name="a", topic_id=ID), m.PartitionChangeRecord(topic_id=ID, partition_id=0)],
        [m.FenceBrokerRecord(id=1, epoch=1)],
        [m.RegisterBrokerRecord(broker_id=1, broker_epoch=2), m.FenceBrokerRecord(id=1, epoch=1)],
        [
            m.RegisterBrokerRecord(broker_id=1, broker_epoch=2),
            m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=2),
        ],
        [
            m.RegisterBrokerRecord(broker_id=1, broker_epoch=2),
            m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, in_controlled_shutdown=-1),
        ],
        [m.RegisterBrokerRecord(broker_id=1, end_points=[m.BrokerEndpoint(name="", host="h", port=1)])],
        [m.RegisterControllerRecord(end_points=[m.ControllerEndpoint(name="C", security_protocol=4)])],
        [m.FeatureLevelRecord(name="metadata.version", feature_level=6)],
        [m.FeatureLevelRecord(name="metadata.version", feature_level=0)],
        [m.TopicRecord(name="a", topic_id=ID), m.PartitionRecord(topic_id=ID, replicas=[1, 2], directories=[ID])],
        [m.TopicRecord(name="a", topic_id=ID), m.PartitionRecord(topic_id=ID, leader_recovery_state=2)],
        [
            m.TopicRecord(name="a", topic_id=ID),
            m.PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], directories=[ID]),
            m.PartitionChangeRecord(topic_id=ID, partition_id=0, replicas=[1, 2]),
        ],
        [m.RemoveAccessControlEntryRecord(id=ID)],
        [m.ClearElrRecord(topic_name="a")],
        [m.BeginTransactionRecord(), m.BeginTransactionRecord()],
    ],
)
def test_records_that_contradict_the_image_are_refused(records: list[Message]) -> None:
    with pytest.raises(UnknownMetadataError):
        replayed(*records)


def test_a_partition_change_keeps_absent_fields() -> None:
    image = replayed(
        m.TopicRecord(name="a", topic_id=ID),
        m.PartitionRecord(
            topic_id=ID, partition_id=0, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=4, partition_epoch=7
        ),
        m.PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1]),
    )
    partition = image.topics["a"].partitions[0]
    assert (partition.isr, partition.leader, partition.leader_epoch, partition.partition_epoch) == ((1,), 1, 4, 8)
    replay_record(image, m.PartitionChangeRecord(topic_id=ID, partition_id=0, leader=1), ClusterDelta())
    partition = image.topics["a"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 5, 9)


FIRST, SECOND = b"\x0a" * 16, b"\x0b" * 16


@for_each(
    ("given", "change", "directories"),
    [
        ([FIRST, SECOND], {"replicas": [2, 3]}, [FIRST, SECOND]),  # by their places, as in Kafka
        ([FIRST, SECOND], {"replicas": [2], "directories": [SECOND]}, [SECOND]),
        ([FIRST, SECOND], {"directories": []}, [MIGRATING_DIRECTORY] * 2),
        ([], {}, [MIGRATING_DIRECTORY] * 2),
        ([], {"replicas": [1, 2, 3]}, [MIGRATING_DIRECTORY] * 3),
        ([MIGRATING_DIRECTORY] * 2, {"replicas": [1]}, [MIGRATING_DIRECTORY]),
        ([MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY], {"isr": []}, [MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY]),
    ],
)
def test_a_record_without_directories_is_older_than_they_are(
    given: list[bytes], change: dict[str, Any], directories: list[bytes]
) -> None:
    """KIP-858."""
    image = replayed(
        m.TopicRecord(name="a", topic_id=ID),
        m.PartitionRecord(topic_id=ID, partition_id=0, replicas=[1, 2], isr=[1], leader=1, directories=given),
        m.PartitionChangeRecord(topic_id=ID, partition_id=0, **change),
    )
    assert image.topics["a"].partitions[0].directories == tuple(directories)


def test_reserved_directories_are_kafkas() -> None:
    """KIP-858: with nodes of both a lost replica must not be taken for an online one."""
    assert (
        bytes(16),
        bytes(15) + b"\1",
        bytes(15) + b"\2",
    ) == (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY)
    for reserved in (bytes(15) + b"\x63", bytes(8) + b"\xff" * 8):
        assert is_reserved_directory(reserved)
    for free in (bytes(15) + b"\x64", bytes(7) + b"\1" + bytes(8), b"\xff" * 16):
        assert not is_reserved_directory(free)


def test_what_is_removed_may_be_missing() -> None:
    """Brokers of Kafka do not ask; its controllers write no such records."""
    image = replayed(
        m.RegisterBrokerRecord(broker_id=1, broker_epoch=2),
        m.UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        m.UnregisterBrokerRecord(broker_id=2, broker_epoch=1),
        m.UnregisterControllerRecord(controller_id=1),
        m.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        m.RemoveDelegationTokenRecord(token_id="t"),
    )
    assert same(image, ClusterImage())


def test_the_last_of_a_name_counts() -> None:
    image = replayed(
        m.RegisterBrokerRecord(
            broker_id=1,
            end_points=[m.BrokerEndpoint(name="A", host="h", port=port) for port in (1, 2)],
            features=[m.BrokerFeature(name="f", max_supported_version=level) for level in (1, 2)],
            log_dirs=[FIRST, b"\xfe" * 16, SECOND],
            is_migrating_zk_broker=True,
        ),
        m.RegisterControllerRecord(
            controller_id=1, end_points=[m.ControllerEndpoint(name="A", host="h", port=port) for port in (1, 2)]
        ),
        m.ClientQuotaRecord(
            entity=[m.ClientQuotaRecordEntityData(entity_type="user", entity_name=name) for name in ("a", "b")],
            key="k",
            value=1.0,
        ),
    )
    broker = image.brokers[1]
    assert [entry.port for entry in (*broker.endpoints, *image.controllers[1].end_points)] == [2, 2]
    assert [entry.max_supported_version for entry in broker.features] == [2]
    assert broker.directories == (b"\xfe" * 16, FIRST, SECOND)
    assert list(image.quotas) == [(("user", "b"),)]
    assert same(replayed(*image_records(image)), image)


def test_a_snapshot_has_elrs_only_with_the_feature() -> None:
    records = [
        m.TopicRecord(name="a", topic_id=ID),
        m.PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], eligible_leader_replicas=[1], last_known_elr=[1]),
    ]
    for level, elr in ((1, (1,)), (0, ())):
        image = replayed(m.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=level), *records)
        partition = replayed(*image_records(image)).topics["a"].partitions[0]
        assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == (elr, elr, -1)


def test_the_level_of_kraft_version_is_that_of_control_records() -> None:
    assert replayed(m.FeatureLevelRecord(name="kraft.version", feature_level=1)).features == {}


def test_elr_is_kept_and_cleared() -> None:
    """R17."""
    image = replayed(
        m.TopicRecord(name="a", topic_id=ID),
        m.PartitionRecord(
            topic_id=ID,
            partition_id=0,
            replicas=[1, 2],
            isr=[1],
            leader=1,
            eligible_leader_replicas=[2],
            last_known_elr=[1],
        ),
    )
    assert image.topics["a"].partitions[0].elr == (2,)
    delta = ClusterDelta()
    replay_record(image, m.ClearElrRecord(), delta)
    assert (image.topics["a"].partitions[0].elr, image.topics["a"].partitions[0].last_known_elr) == ((), ())
    assert list(delta.changed_partitions) == [(ID, 0)]


def test_a_cleared_elr_is_a_change_of_the_partition() -> None:
    """R11, R17: Kafka counts it in the partition epoch, so a proposal with an epoch less would never be taken."""
    image = replayed(
        m.TopicRecord(name="a", topic_id=ID),
        *(
            m.PartitionRecord(
                topic_id=ID, partition_id=index, replicas=[1, 2], isr=[1], leader=1, leader_epoch=3, partition_epoch=7
            )
            for index in range(3)
        ),
        m.PartitionChangeRecord(topic_id=ID, partition_id=1, eligible_leader_replicas=[2]),
        m.PartitionChangeRecord(topic_id=ID, partition_id=2, last_known_elr=[1]),
        m.ClearElrRecord(topic_name="a"),
        m.ClearElrRecord(),
    )
    epochs = [
        (partition.leader_epoch, partition.partition_epoch) for partition in image.topics["a"].partitions.values()
    ]
    assert epochs == [(3, 7), (3, 9), (3, 9)]


def test_fenced_brokers_are_hidden_from_clients() -> None:
    """R16."""
    image = replayed(m.RegisterBrokerRecord(broker_id=1, broker_epoch=5, fenced=True))
    assert image.live_brokers() == []
    replay_record(image, m.UnfenceBrokerRecord(id=1, epoch=5), ClusterDelta())
    assert [broker.id for broker in image.live_brokers()] == [1]
    replay_record(image, m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1), ClusterDelta())
    assert image.live_brokers() == []
    replay_record(
        image, m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1, log_dirs=[ID]), ClusterDelta()
    )
    assert image.brokers[1].directories == (ID,)
    assert not image.brokers[1].fenced


def test_a_metadata_transaction_is_applied_atomically() -> None:
    """KIP-868."""
    image = replayed(m.BeginTransactionRecord(name="t"), m.TopicRecord(name="a", topic_id=ID))
    assert image.topics == {}
    assert image.is_in_transaction
    delta = ClusterDelta()
    replay_record(image, m.EndTransactionRecord(), delta)
    assert list(image.topics) == ["a"]
    assert list(delta.created_topics) == [ID]


def test_an_aborted_metadata_transaction_changes_nothing() -> None:
    image = replayed(m.BeginTransactionRecord(), m.TopicRecord(name="a", topic_id=ID), m.AbortTransactionRecord())
    assert same(image, ClusterImage())


def test_a_topic_created_and_deleted_in_one_delta_is_not_in_it() -> None:
    world = ControllerWorld()
    world.create("kept")
    topic_id = world.image.topics["kept"].topic_id
    delta = ClusterDelta()
    for record in [
        m.TopicRecord(name="gone", topic_id=ID),
        m.PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], isr=[1], leader=1),
        m.RemoveTopicRecord(topic_id=ID),
        m.PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1),
        m.RemoveTopicRecord(topic_id=topic_id),
    ]:
        replay_record(world.image, record, delta)
    assert delta.created_topics == {}
    assert list(delta.deleted_topics) == [topic_id]
    assert delta.new_partitions == {}
    assert delta.changed_partitions == {}


def test_metadata_that_barnabas_does_not_use_is_stored() -> None:
    image = replayed(
        m.AccessControlEntryRecord(id=ID, principal="User:a"),
        m.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s"),
        m.ClientQuotaRecord(
            entity=[
                m.ClientQuotaRecordEntityData(entity_type="user", entity_name="u"),
                m.ClientQuotaRecordEntityData(entity_type="client-id", entity_name=None),
            ],
            key="producer_byte_rate",
            value=5.0,
        ),
        m.DelegationTokenRecord(token_id="t", owner="o"),
        m.RegisterControllerRecord(controller_id=1),
        m.FeatureLevelRecord(name="group.version", feature_level=1),
        m.ProducerIdsRecord(next_producer_id=0),
        m.ZkMigrationStateRecord(zk_migration_state=2),
    )
    assert image.quotas == {(("client-id", None), ("user", "u")): {"producer_byte_rate": 5.0}}
    assert same(replayed(*image_records(image)), image)
    for record in (
        m.RemoveAccessControlEntryRecord(id=ID),
        m.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        m.ClientQuotaRecord(
            entity=[
                m.ClientQuotaRecordEntityData(entity_type="client-id", entity_name=None),
                m.ClientQuotaRecordEntityData(entity_type="user", entity_name="u"),
            ],
            key="producer_byte_rate",
            remove=True,
        ),
        m.RemoveDelegationTokenRecord(token_id="t"),
        m.UnregisterControllerRecord(controller_id=1),
        m.FeatureLevelRecord(name="group.version", feature_level=0),
    ):
        replay_record(image, record, ClusterDelta())
    assert (image.acls, image.scram, image.quotas, image.tokens, image.controllers, image.features) == ({},) * 6
    assert image.next_producer_id == 0


names = st.sampled_from(["a", "b", "c.d", "c_d", "bad name"])
numbers = st.integers(-1, 4)
commands = st.one_of(
    st.tuples(st.just("create"), names, numbers),
    st.tuples(st.just("delete"), names, st.just(0)),
    st.tuples(st.just("extend"), names, numbers),
    st.tuples(st.just("configure"), names, numbers),
    st.tuples(st.just("producer ids"), names, st.just(0)),
    st.tuples(st.just("crash"), names, st.just(0)),
)


def run(world: ControllerWorld, command: str, name: str, number: int) -> None:
    if command == "create":
        world.create(name, number, retention_ms=str(number * 1000))
    elif command == "delete":
        world.delete(names=(name,))
    elif command == "extend":
        request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=number, assignments=None)])
        world.commit(world.controller.create_partitions(request))
    elif command == "configure":
        config = IncrementalAlterConfigsRequestAlterableConfig(name="segment.ms", value=str(number))
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=2, resource_name=name, configs=[config]
        )
        world.commit(world.controller.incremental_alter_configs(IncrementalAlterConfigsRequest(resources=[resource])))
    elif command == "producer ids":
        world.apply(allocate_producer_ids(world.image, 1)[0])
    else:
        world.apply(election_records(world.image, 1, after_crash=True))


@settings(max_examples=EXAMPLES)
@given(st.lists(commands, max_size=25))
def test_log_and_snapshot_restore_the_image(history: list[tuple[str, str, int]]) -> None:
    world = ControllerWorld()
    for command in history:
        run(world, *command)
    assert same(world.restarted(), world.image)
    snapshot = b"".join(
        build_checkpoint(image_records(world.image), quorum=world.image.quorum, epoch=1, last_timestamp_ms=0, now_ms=0)
    )
    assert same(load_checkpoint(snapshot, world.offset, 1), world.image)


def test_producer_ids_are_never_allocated_twice() -> None:
    world = ControllerWorld()
    seen: set[int] = set()
    for _ in range(3):
        records, block = allocate_producer_ids(world.image, 1)
        assert len(block) == 1000
        assert seen.isdisjoint(block)
        seen.update(block)
        world.apply(records)
    assert world.restarted().next_producer_id == 3000


def test_after_a_crash_every_partition_has_a_new_leader_epoch() -> None:
    """KIP-320: consumers detect that the end of a log may be lost."""
    world = ControllerWorld()
    world.create("a", 2)
    world.apply(election_records(world.image, 1, after_crash=True))
    assert [partition.leader_epoch for partition in world.image.topics["a"].partitions.values()] == [1, 1]
