"""Metadata logs that our controller writes: random requests of brokers and tools, time that passes, new controllers.

Every record is encoded as the broker would, in the version for the metadata.version of then; the controller's own image
is built from the records before they are encoded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, Final

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch
from barnabas.coord.cluster.metadata_log.metadata_serde import as_written
from barnabas.coord.cluster.node_records import ELR_FEATURE, election_records, shutdown_records
from barnabas.coord.cluster.resources import BROKER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, NO_LEADER
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    FeatureUpdateKey,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from barnabas.wire.messages.security.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.schema import Message
from barnabas.wire.steps import result_of
from tests.support.controller.brokers import SESSION_S, Brokers

IDS: Final = (1, 2, 3, 4)
NAMES: Final = ("orders", "others", "unclean", "__consumer_offsets")


class Written(Brokers):
    """A cluster whose log is kept as bytes."""

    def __init__(self, choose: random.Random) -> None:
        self.random = choose
        self.batches: list[bytes] = []
        version = choose.choice([33, 33, 33, choose.randint(7, 33)])
        elr = version >= 23 and choose.random() < 0.7
        super().__init__(*IDS[:3], elr=elr, metadata_version=version)

    def apply(self, records: Iterable[Message]) -> ClusterDelta:
        written = list(records)
        version = self.image.metadata_version
        if written:
            self.batches.append(
                build_metadata_batch(written, epoch=1, now_ms=5, base_offset=self.offset, metadata_version=version)
            )
        return super().apply([as_written(record, version) for record in written])

    def ask(self, steps: Generator[None, None, Outcome[Any]]) -> None:
        """A request that is answered in steps."""
        self.commit(result_of(steps))

    # Random events

    def restart(self) -> None:
        broker = self.random.choice(IDS)
        known = self.image.brokers.get(broker)
        epoch = known.epoch if known is not None and self.random.random() < 0.5 else -1
        directories = [bytes([broker, number]) * 8 for number in range(self.random.choice([1, 1, 2]))]
        self.register(broker, previous_epoch=epoch, directories=directories, rack=self.random.choice([None, "r"]))
        self.heartbeat(broker)

    def beat(self) -> None:
        broker = self._broker()
        own = self.image.brokers[broker].directories
        self.heartbeat(
            broker,
            fence=self.random.random() < 0.1,
            shut_down=self.random.random() < 0.1,
            offline=own[:1] if self.random.random() < 0.1 else (),
            cordoned=own[:1] if self.random.random() < 0.1 else None,
        )

    def wait(self) -> None:
        self.pass_time(self.random.choice([1.0, SESSION_S / 2, SESSION_S + 1, 301.0]))

    def wake_all(self) -> None:
        for broker in list(self.image.brokers):
            self.heartbeat(broker)

    def change_controller(self) -> None:
        self.new_controller()

    def unregister(self) -> None:
        self.commit(self.controller.unregister_broker(UnregisterBrokerRequest(broker_id=self._broker())))

    def new_topic(self) -> None:
        name = self.random.choice(NAMES)
        configs = {"min_insync_replicas": self.random.choice(["1", "2"])}
        if self.random.random() < 0.5:
            configs = {"unclean_leader_election_enable": "true"}
        if self.random.random() < 0.5:
            self.create(name, *[self._replicas() for _ in range(self.random.randint(1, 3))], **configs)
        else:
            self.place(name, self.random.randint(1, 4), self.random.randint(1, 3))

    def delete_topic(self) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=self.random.choice(NAMES))])
        self.commit(self.controller.delete_topics(request))

    def more_partitions(self) -> None:
        topic = CreatePartitionsTopic(name=self.random.choice(NAMES), count=self.random.randint(2, 6), assignments=None)
        self.commit(self.controller.create_partitions(CreatePartitionsRequest(topics=[topic])))

    def alter_isr(self) -> None:
        name, index = self._partition()
        partition = self.partition(name, index)
        if partition.leader != NO_LEADER:
            isr = {
                partition.leader,
                *self.random.sample(partition.replicas, self.random.randint(0, len(partition.replicas))),
            }
            self.alter(name, sorted(isr), index=index, recovery=self.random.choice([0, 0, 1]))

    def elect(self) -> None:
        request = ElectLeadersRequest(election_type=self.random.choice([0, 1]), topic_partitions=None)
        self.commit(self.controller.elect_leaders(request))

    def reassign(self) -> None:
        name, index = self._partition()
        replicas = self.random.choice([None, self._replicas(), self._replicas()])
        topic = ReassignableTopic(
            name=name, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)]
        )
        self.commit(self.controller.alter_partition_reassignments(AlterPartitionReassignmentsRequest(topics=[topic])))

    def assign_directory(self) -> None:
        broker = self._broker()
        own = self.image.brokers[broker].directories
        self.assign(broker, self.random.choice([*own, LOST_DIRECTORY]), self._partition())

    def change_config(self) -> None:
        kind, name, key = self.random.choice(
            [
                (TOPIC, self.random.choice(NAMES), "min_insync_replicas"),
                (TOPIC, self.random.choice(NAMES), "retention_ms"),
                (BROKER, "", "min_insync_replicas"),
                (BROKER, "1", "max_connections"),
                (GROUP, "g", "consumer_session_timeout_ms"),
                (CLIENT_METRICS, "m", "interval_ms"),
            ]
        )
        self.configure(kind, name, **{key: self.random.choice([None, "1", "2", "3"])})

    def change_quota(self) -> None:
        entity = AlterClientQuotasRequestEntityData(
            entity_type=self.random.choice(["user", "client-id"]), entity_name=self.random.choice([None, "a"])
        )
        change = OpData(key="producer_byte_rate", value=self.random.choice([1.0, 2.5]), remove=self._once_in(3))
        entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[change])
        self.commit(self.controller.alter_client_quotas(AlterClientQuotasRequest(entries=[entry])))

    def change_acls(self) -> None:
        user = self.random.choice(["User:a", "User:b"])
        if self._once_in(3):
            filter_ = DeleteAclsFilter(
                resource_type_filter=2, principal_filter=user, operation=1, permission_type=1, pattern_type_filter=1
            )
            self.ask(self.controller.delete_acls_in_steps(DeleteAclsRequest(filters=[filter_])))
        else:
            acl = AclCreation(
                resource_type=2,
                resource_name=self.random.choice(["*", "orders"]),
                principal=user,
                host="*",
                operation=self.random.randint(3, 8),
                permission_type=3,
            )
            self.ask(self.controller.create_acls_in_steps(CreateAclsRequest(creations=[acl])))

    def change_password(self) -> None:
        mechanism, name = self.random.choice([1, 2]), self.random.choice(["u", "v"])
        if self._once_in(3):
            request = AlterUserScramCredentialsRequest(
                deletions=[ScramCredentialDeletion(name=name, mechanism=mechanism)]
            )
        else:
            credential = ScramCredentialUpsertion(
                name=name, mechanism=mechanism, iterations=4096, salt=b"salt", salted_password=self.random.randbytes(32)
            )
            request = AlterUserScramCredentialsRequest(upsertions=[credential])
        self.ask(self.controller.alter_user_scram_credentials_in_steps(request))

    def change_feature(self) -> None:
        name, level, kind = self.random.choice(
            [
                (ELR_FEATURE, 1, 1),
                (ELR_FEATURE, 0, 2),
                ("group.version", 0, 2),
                ("group.version", 1, 1),
                ("metadata.version", self.random.randint(self.image.metadata_version, 33), 1),
            ]
        )
        update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        self.ask(self.controller.update_features_in_steps(UpdateFeaturesRequest(feature_updates=[update])))

    def take_producer_ids(self) -> None:
        broker = self._broker()
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=self.image.brokers[broker].epoch)
        self.commit(self.controller.allocate_producer_ids(request))

    def stop_alone(self) -> None:
        """The records that a single node writes when it stops, and when it starts again."""
        broker = self._broker()
        self.apply(shutdown_records(self.image, self.image.brokers[broker]))
        self.apply(election_records(self.image, broker, after_crash=self._once_in(2)))

    def _once_in(self, times: int) -> bool:
        return self.random.random() * times < 1

    def _broker(self) -> int:
        return self.random.choice(list(self.image.brokers))

    def _partition(self) -> tuple[str, int]:
        partitions = [(name, index) for name, topic in self.image.topics.items() for index in topic.partitions]
        return self.random.choice(partitions)

    def _replicas(self) -> list[int]:
        return self.random.sample(IDS, self.random.randint(1, 3))


ACTIONS: Final[tuple[Callable[[Written], None], ...]] = (
    *[Written.restart] * 3,
    *[Written.beat] * 4,
    *[Written.wait] * 3,
    *[Written.wake_all] * 4,
    Written.change_controller,
    Written.unregister,
    *[Written.new_topic] * 4,
    Written.delete_topic,
    Written.more_partitions,
    *[Written.alter_isr] * 6,
    Written.elect,
    *[Written.reassign] * 3,
    *[Written.assign_directory] * 2,
    *[Written.change_config] * 3,
    Written.change_quota,
    Written.change_acls,
    Written.change_password,
    Written.change_feature,
    Written.take_producer_ids,
    Written.stop_alone,
)

_ABOUT_PARTITIONS: Final = frozenset({Written.alter_isr, Written.reassign, Written.assign_directory})


def controller_log(seed: int) -> Written:
    """A cluster to which some forty things have happened."""
    choose = random.Random(seed)
    cluster = Written(choose)
    for _ in range(40):
        action = choose.choice(ACTIONS)
        if cluster.image.brokers and (cluster.image.topics or action not in _ABOUT_PARTITIONS):
            with suppress(KafkaError):  # refused
                action(cluster)
        else:
            with suppress(KafkaError):
                (cluster.new_topic if cluster.image.brokers else cluster.restart)()
    return cluster
