"""The image: every record type, and its recovery from the log and from a snapshot."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coord.cluster.checkpoint import build_checkpoint, load_checkpoint
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.image_records import image_records
from barnabas.coord.cluster.metadata_serde import RECORD_TYPES
from barnabas.coord.cluster.node_records import allocate_producer_ids, election_records
from barnabas.coord.cluster.replay import replay_record
from barnabas.coord.cluster.topic_image import UNASSIGNED_DIRECTORY
from barnabas.wire.messages import metadata_records as m
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.schema import Message
from tests.coord.cluster.worlds import World, same
from tests.support.cases import for_each
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
        [m.RegisterBrokerRecord(broker_id=1, broker_epoch=2), m.UnregisterBrokerRecord(broker_id=1, broker_epoch=1)],
        [m.RemoveAccessControlEntryRecord(id=ID)],
        [m.RemoveUserScramCredentialRecord(name="u", mechanism=1)],
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


def test_moved_replicas_keep_known_directories() -> None:
    image = replayed(
        m.TopicRecord(name="a", topic_id=ID),
        m.PartitionRecord(
            topic_id=ID, partition_id=0, replicas=[1, 2], isr=[1], leader=1, directories=[b"\x0a" * 16, b"\x0b" * 16]
        ),
        m.PartitionChangeRecord(topic_id=ID, partition_id=0, replicas=[2, 3]),
    )
    assert image.topics["a"].partitions[0].directories == (b"\x0b" * 16, UNASSIGNED_DIRECTORY)


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
    world = World()
    world.create("kept")
    kept = world.image.topics["kept"].topic_id
    delta = ClusterDelta()
    for record in [
        m.TopicRecord(name="gone", topic_id=ID),
        m.PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], isr=[1], leader=1),
        m.RemoveTopicRecord(topic_id=ID),
        m.PartitionChangeRecord(topic_id=kept, partition_id=0, leader=1),
        m.RemoveTopicRecord(topic_id=kept),
    ]:
        replay_record(world.image, record, delta)
    assert delta.created_topics == {}
    assert list(delta.deleted_topics) == [kept]
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
        m.ProducerIdsRecord(next_producer_id=3000),
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


def run(world: World, command: str, name: str, number: int) -> None:
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
    world = World()
    for command in history:
        run(world, *command)
    assert same(world.restarted(), world.image)
    snapshot = b"".join(
        build_checkpoint(image_records(world.image), quorum=world.image.quorum, epoch=1, last_timestamp_ms=0, now_ms=0)
    )
    assert same(load_checkpoint(snapshot, world.offset, 1), world.image)


def test_producer_ids_are_never_allocated_twice() -> None:
    world = World()
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
    world = World()
    world.create("a", 2)
    world.apply(election_records(world.image, 1, after_crash=True))
    assert [partition.leader_epoch for partition in world.image.topics["a"].partitions.values()] == [1, 1]
