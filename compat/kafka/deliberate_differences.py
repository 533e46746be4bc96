"""Deliberate differences from Kafka's image: the records, Kafka's handling of them, and why Barnabas' is another one.

No controller writes most of them: Kafka's controllers refuse such a record, its brokers do not look.
`python -m compat.kafka.metadata_images` leaves these cases out; each is checked to be a difference still.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.schema import Message

FIRST, SECOND = b"\x01" * 16, b"\x02" * 16


class Deliberate(NamedTuple):
    """Metadata that Kafka and Barnabas handle differently."""

    name: str
    kafka: str
    why: str
    batches: list[list[Message]]

    def log(self) -> list[bytes]:
        """The batches as bytes, after one that sets metadata.version."""
        version = m.FeatureLevelRecord(name="metadata.version", feature_level=33)
        built, offset = [], 0
        for records in [[version], *self.batches]:
            built.append(build_metadata_batch(records, epoch=1, now_ms=5, base_offset=offset))
            offset += len(records)
        return built


def _topic(topic_id: bytes = FIRST, name: str = "a") -> list[Message]:
    return [m.TopicRecord(name=name, topic_id=topic_id), m.PartitionRecord(partition_id=0, topic_id=topic_id)]


def _config(name: str = "retention.ms", kind: int = 2) -> Message:
    return m.ConfigRecord(resource_type=kind, resource_name="a", name=name, value="1")


def _user(name: str, mechanism: int = 1) -> Message:
    return m.UserScramCredentialRecord(name=name, mechanism=mechanism, iterations=4096)


CASES: Final = (
    Deliberate(
        "a topic that exists already",
        "the name leads to the new topic, both ids stay",
        "a topic that cannot be found by its name would keep its files for ever; the log is damaged",
        [_topic(), _topic(SECOND)],
    ),
    Deliberate(
        "a change of a topic that the same batch has removed",
        "the topic is there again",
        "its files are deleted already",
        [_topic(), [m.RemoveTopicRecord(topic_id=FIRST), m.PartitionChangeRecord(partition_id=0, topic_id=FIRST)]],
    ),
    Deliberate(
        "the end of the ELRs of a topic that the same batch has removed",
        "nothing; in another batch it is an error",
        "it is an error in any batch",
        [_topic(), [m.RemoveTopicRecord(topic_id=FIRST), m.ClearElrRecord(topic_name="a")]],
    ),
    Deliberate(
        "a topic that one batch creates with configs and removes",
        "the configs stay, for the next topic of that name; its controllers remove them",
        "a new topic has the configs of its own creation (R22)",
        [[*_topic(), _config(), m.RemoveTopicRecord(topic_id=FIRST)]],
    ),
    Deliberate(
        "the only user of a SCRAM mechanism is replaced by another in one batch",
        "the other user is lost too, if the map that holds both gives the first one first; its controllers keep it",
        "a credential that was acknowledged is there",
        [[_user("a")], [m.RemoveUserScramCredentialRecord(name="a", mechanism=1), _user("b")]],
    ),
    Deliberate(
        "an ACL that one batch removes twice",
        "nothing; in another batch it is an error",
        "it is an error in any batch",
        [
            [m.AccessControlEntryRecord(id=FIRST, resource_name="a", principal="User:a", host="*")],
            [m.RemoveAccessControlEntryRecord(id=FIRST)] * 2,
        ],
    ),
    Deliberate(
        "configs with keys that Kafka 4.4 does not know",
        "they are dropped, also from snapshots",
        "a newer node finds what it has written; nothing here reads an unknown key",
        [[*_topic(), _config("a.key.of.tomorrow")]],
    ),
    Deliberate(
        "configs of a kind of resource that Kafka 4.4 does not know",
        "they are dropped, also from snapshots",
        "a newer node finds what it has written",
        [[_config(kind=64)]],
    ),
    Deliberate(
        "a SCRAM mechanism that nobody knows",
        "it becomes the mechanism 0",
        "a snapshot has the number that the record had; no user can log in with it",
        [[_user("a", 3)]],
    ),
    Deliberate(
        "an ACL with an operation that nobody knows",
        "it becomes the operation 0",
        "a snapshot has the number that the record had; it allows nothing",
        [[m.AccessControlEntryRecord(id=FIRST, resource_type=2, principal="User:a", host="*", operation=99)]],
    ),
    Deliberate(
        "a broker's listener with a security protocol that nobody knows",
        "it has none, and no snapshot can be written any more",
        "a snapshot has the number that the record had; no client asks for such a listener",
        [[m.RegisterBrokerRecord(broker_id=1, end_points=[m.BrokerEndpoint(name="A", host="h", security_protocol=9)])]],
    ),
    Deliberate(
        "a delegation token of an owner that is no principal",
        "it is refused",
        "nobody can use it; a broker that stops for it helps nobody",
        [[m.DelegationTokenRecord(token_id="t", owner="alice", requester="User:a")]],
    ),
    Deliberate(
        "records behind an aborted metadata transaction in the same batch",
        "the transaction takes effect with them",
        "an aborted transaction has no effect (KIP-868)",
        [
            [
                m.BeginTransactionRecord(),
                m.ProducerIdsRecord(next_producer_id=1000),
                m.AbortTransactionRecord(),
                m.NoOpRecord(),
            ]
        ],
    ),
    Deliberate(
        "an impossible record in a metadata transaction",
        "it is refused at once, also if the transaction is aborted later",
        "it is refused where the transaction ends: what is aborted was never there (KIP-868)",
        [[m.BeginTransactionRecord()], [m.RemoveTopicRecord(topic_id=FIRST)], [m.AbortTransactionRecord()]],
    ),
    Deliberate(
        "metadata.version 34, which Kafka 4.4 has for its own tests",
        "its brokers read it; its controllers refuse it unless unstable versions are enabled",
        "its records are not final",
        [[m.FeatureLevelRecord(name="metadata.version", feature_level=34)]],
    ),
)
