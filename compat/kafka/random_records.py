"""Random metadata records, one function a type. Lists, ids and names are few, so that records meet each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.schema import Message

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
BROKERS: Final = (1, 2, 3, 4, 5)
_KEYS: Final = {
    TOPIC: ("retention.ms", "min.insync.replicas", "cleanup.policy"),
    BROKER: ("min.insync.replicas", "log.retention.ms", "a.key.of.a.plugin"),
    CLIENT_METRICS: ("interval.ms", "match", "metrics"),
    GROUP: ("consumer.session.timeout.ms", "share.auto.offset.reset"),
}
ELR: Final = "eligible.leader.replicas.version"
_FEATURES: Final = ("group.version", "transaction.version", "share.version")
_FLOATS: Final = (0.0, -0.0, 1.0, 1024.5, 1e300, -1.0, float("inf"), float("nan"), 5e-324)
_TEXTS: Final = ("", "a", "User:a", "ü\u20ac", "x" * 300)


def _some(choose: random.Random, least: int = 0) -> list[int]:
    return choose.sample(BROKERS, choose.randint(least, 4))


def _of(choose: random.Random, replicas: list[int]) -> list[int]:
    return choose.sample(replicas, choose.randint(0, len(replicas)))


def _directories(choose: random.Random, count: int) -> list[bytes]:
    """A directory for each replica, or none, as old controllers wrote."""
    if choose.random() < 0.15:
        return []
    if choose.random() < 0.15:
        return [MIGRATING_DIRECTORY] * count
    known = (UNASSIGNED_DIRECTORY, LOST_DIRECTORY, MIGRATING_DIRECTORY, b"\xfe" * 16, b"\x0a" * 16)
    return [choose.choice(known) for _ in range(count)]


def partition(choose: random.Random, topic_id: bytes, index: int) -> m.PartitionRecord:
    """A partition."""
    replicas = _some(choose, 1)
    return m.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=_of(choose, replicas),
        removing_replicas=_of(choose, replicas) if choose.random() < 0.2 else [],
        adding_replicas=_of(choose, replicas) if choose.random() < 0.2 else [],
        leader=choose.choice([-1, *replicas]),
        leader_recovery_state=choose.choice([0, 0, 1]),
        leader_epoch=choose.randint(0, 5),
        partition_epoch=choose.randint(0, 5),
        directories=_directories(choose, len(replicas)),
        eligible_leader_replicas=choose.choice([None, None, [], _of(choose, replicas)]),
        last_known_elr=choose.choice([None, None, [], [choose.choice(replicas)]]),
    )


def partition_change(
    choose: random.Random, topic_id: bytes, index: int, old: list[int], *, is_odd: bool
) -> m.PartitionChangeRecord:
    """A change of a partition with these replicas. A record with other replicas has their directories, unless odd."""

    def maybe(share: float) -> bool:
        return choose.random() < share

    record = m.PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    replicas = old
    if maybe(0.2):
        record.replicas = replicas = _some(choose, 1)
        record.directories = _directories(choose, len(replicas))
        if is_odd and maybe(0.1):
            record.directories = choose.choice([None, [bytes(16)], [bytes(16)] * 3])
    elif maybe(0.2):
        record.directories = _directories(choose, len(replicas))
    record.isr = _of(choose, replicas) if maybe(0.4) else None
    record.removing_replicas = _of(choose, replicas) if maybe(0.1) else None
    record.adding_replicas = _of(choose, replicas) if maybe(0.1) else None
    record.eligible_leader_replicas = _of(choose, replicas) if maybe(0.3) else None
    record.last_known_elr = _of(choose, replicas)[:1] if maybe(0.2) else None
    record.leader = choose.choice([-1, *replicas]) if maybe(0.4) else -2
    record.leader_recovery_state = choose.choice([0, 1]) if maybe(0.2) else -1
    if is_odd and maybe(0.01):
        record.leader_recovery_state = 2
    return record


def config(choose: random.Random, topics: list[str]) -> m.ConfigRecord:
    """A config of any kind of resource; one in three is removed."""
    kind = choose.choice([TOPIC, TOPIC, TOPIC, BROKER, BROKER, CLIENT_METRICS, GROUP])
    name = choose.choice(topics if kind == TOPIC else ["", "1", "2"] if kind == BROKER else ["x", "y"])
    value = choose.choice([None, "1", "2", _TEXTS[3], ""])
    return m.ConfigRecord(resource_type=kind, resource_name=name, name=choose.choice(_KEYS[kind]), value=value)


def registration(choose: random.Random, broker: int, epoch: int, metadata_version: int) -> m.RegisterBrokerRecord:
    """A new incarnation of a broker."""
    names = choose.choices(["PLAINTEXT", "SSL", "INTERNAL"], k=choose.randint(0, 3))
    features = choose.choices(["metadata.version", "group.version", "x"], k=choose.randint(0, 3))
    is_old = 8 <= metadata_version < 22 and choose.random() < 0.2
    return m.RegisterBrokerRecord(
        broker_id=broker,
        is_migrating_zk_broker=is_old,
        incarnation_id=choose.randbytes(16),
        broker_epoch=epoch,
        end_points=[
            m.BrokerEndpoint(
                name=name, host="localhost", port=choose.randint(0, 65535), security_protocol=choose.randint(0, 3)
            )
            for name in names
        ],
        features=[
            m.BrokerFeature(
                name=name, min_supported_version=choose.randint(0, 3), max_supported_version=choose.randint(3, 30)
            )
            for name in features
        ],
        rack=choose.choice([None, "", "r1"]),
        fenced=choose.random() < 0.5,
        in_controlled_shutdown=choose.random() < 0.2,
        log_dirs=[choose.randbytes(16) for _ in range(choose.randint(0, 3))],
        cordoned_log_dirs=choose.choice([None, [], [choose.randbytes(16)]]),
    )


def registration_change(choose: random.Random, broker: int, epoch: int) -> Message:
    """A change of a registration."""
    if choose.random() < 0.2:
        return m.FenceBrokerRecord(id=broker, epoch=epoch)
    if choose.random() < 0.2:
        return m.UnfenceBrokerRecord(id=broker, epoch=epoch)
    return m.BrokerRegistrationChangeRecord(
        broker_id=broker,
        broker_epoch=epoch,
        fenced=choose.choice([-1, 0, 1]),
        in_controlled_shutdown=choose.choice([0, 0, 1]),
        log_dirs=[choose.randbytes(16) for _ in range(choose.choice([0, 0, 1, 3]))],
        cordoned_log_dirs=choose.choice([None, None, [], [choose.randbytes(16)]]),
    )


def controller(choose: random.Random, controller_id: int) -> m.RegisterControllerRecord:
    """A controller's registration."""
    names = choose.choices(["CONTROLLER", "OTHER"], k=choose.randint(0, 2))
    features = choose.choices(["metadata.version", "x"], k=choose.randint(0, 2))
    return m.RegisterControllerRecord(
        controller_id=controller_id,
        incarnation_id=choose.randbytes(16),
        zk_migration_ready=choose.random() < 0.2,
        end_points=[
            m.ControllerEndpoint(
                name=name, host="h", port=choose.randint(0, 65535), security_protocol=choose.randint(0, 3)
            )
            for name in names
        ],
        features=[m.ControllerFeature(name=name, max_supported_version=choose.randint(0, 30)) for name in features],
    )


def feature(choose: random.Random, metadata_version: int) -> m.FeatureLevelRecord:
    """A level of a feature other than metadata.version; kraft.version is in control records."""
    may_have_elr = metadata_version >= 23
    name = choose.choice([*_FEATURES, *[ELR] * may_have_elr, "kraft.version", "a.feature.of.tomorrow"])
    return m.FeatureLevelRecord(name=name, feature_level=choose.choice([0, 1, 1, 2]))


def acl(choose: random.Random, acl_id: bytes) -> m.AccessControlEntryRecord:
    """An ACL."""
    return m.AccessControlEntryRecord(
        id=acl_id,
        resource_type=choose.randint(2, 7),
        resource_name=choose.choice(["*", "a", "ü"]),
        pattern_type=choose.choice([3, 4]),
        principal=choose.choice(["User:*", "User:a", "Group:b:c"]),
        host=choose.choice(["*", "10.0.0.1", "10.0.0.0/8"]),
        operation=choose.randint(2, 14),
        permission_type=choose.choice([2, 3]),
    )


def scram(choose: random.Random) -> m.UserScramCredentialRecord | m.RemoveUserScramCredentialRecord:
    """A credential, or that it is removed, whether or not it is there."""
    name, mechanism = choose.choice(["u", "v", "w"]), choose.choice([1, 2])
    if choose.random() < 0.4:
        return m.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
    return m.UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=choose.randbytes(choose.randint(0, 5)),
        stored_key=choose.randbytes(4),
        server_key=choose.randbytes(4),
        iterations=choose.choice([4096, 0, -1]),
    )


def token(choose: random.Random) -> Message:
    """A delegation token, or that it is removed, whether or not it is there."""
    token_id = choose.choice(["t1", "t2", "t3"])
    if choose.random() < 0.3:
        return m.RemoveDelegationTokenRecord(token_id=token_id)
    return m.DelegationTokenRecord(
        owner=choose.choice(["User:a", "Group:b:c"]),
        requester=choose.choice(["User:a", "User:"]),
        renewers=choose.choices(["User:a", "User:b"], k=choose.randint(0, 3)),
        issue_timestamp=choose.randint(0, 9),
        max_timestamp=choose.randint(0, 1 << 60),
        expiration_timestamp=choose.randint(0, 9),
        token_id=token_id,
    )


def quota(choose: random.Random) -> m.ClientQuotaRecord:
    """A quota of users, client ids or addresses; the order of its parts has no meaning."""
    kinds = choose.choice([["user"], ["client-id"], ["user", "client-id"], ["client-id", "user"], ["ip"], []])
    return m.ClientQuotaRecord(
        entity=[
            m.ClientQuotaRecordEntityData(entity_type=kind, entity_name=choose.choice([None, "a", "b", ""]))
            for kind in [*kinds, *kinds[: choose.random() < 0.1]]
        ],
        key=choose.choice(["producer_byte_rate", "request_percentage"]),
        value=choose.choice(_FLOATS),
        remove=choose.random() < 0.3,
    )


def other(choose: random.Random) -> Message:
    """A record that depends on no other."""
    return choose.choice(
        [
            quota(choose),
            quota(choose),
            quota(choose),
            m.ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=choose.choice([0, 1000, 1 << 40])),
            m.NoOpRecord(),
            m.ZkMigrationStateRecord(zk_migration_state=choose.randint(0, 4)),
        ]
    )


_NOBODY: Final = b"\x77" * 16

ODD_RECORDS: Final[list[Callable[[random.Random], Message]]] = [
    lambda _: m.PartitionRecord(topic_id=_NOBODY, partition_id=0),
    lambda _: m.PartitionChangeRecord(topic_id=_NOBODY, partition_id=0),
    lambda _: m.RemoveTopicRecord(topic_id=_NOBODY),
    lambda _: m.ClearElrRecord(topic_name="nobody"),
    lambda _: m.RemoveAccessControlEntryRecord(id=_NOBODY),
    lambda _: m.EndTransactionRecord(),
    lambda choose: m.FeatureLevelRecord(name="metadata.version", feature_level=choose.choice([-1, 0, 6, 99])),
    lambda choose: m.FeatureLevelRecord(name=choose.choice(_FEATURES), feature_level=-1),
    lambda _: m.RegisterBrokerRecord(broker_id=1, end_points=[m.BrokerEndpoint(name="", host="h", port=1)]),
    lambda _: m.RegisterControllerRecord(
        controller_id=1, end_points=[m.ControllerEndpoint(name="C", host="h", port=1, security_protocol=9)]
    ),
    lambda choose: m.RegisterBrokerRecord(broker_id=choose.randint(6, 8), broker_epoch=-1),
    lambda choose: m.UnregisterBrokerRecord(broker_id=choose.randint(1, 8), broker_epoch=choose.randint(0, 9)),
]
