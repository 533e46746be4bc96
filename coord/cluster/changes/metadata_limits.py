"""Limits of the metadata that clients may have made: partitions, ACLs, users, tokens, quotas, configs of named things.

They are checked when a change would add something, before it is written: records in the log are always loaded, and
existing things can be changed and removed. Kafka limits the records of one request only, except by a policy class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.resources import CLIENT_METRICS, GROUP
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    PartitionRecord,
    UserScramCredentialRecord,
)
from barnabas.wire.schema import Message

_NAMED: Final = {CLIENT_METRICS, GROUP}


class MetadataLimits(NamedTuple):
    """The most there may be of each; the keys are `barnabas.*`."""

    partitions: int
    acls: int
    scram_credentials: int
    delegation_tokens: int
    delegation_tokens_of_owner: int
    client_quotas: int
    config_resources: int


def check_room(image: ClusterImage, records: Iterable[Message], limits: MetadataLimits) -> None:
    """KafkaError(POLICY_VIOLATION) if the records would add more to the image than the limits allow."""
    added: dict[type[Message], list[Message]] = {}
    for record in records:
        if type(record) in _CHECKS:
            added.setdefault(type(record), []).append(record)
    for kind, new in added.items():
        for count, most, what in _CHECKS[kind](image, new, limits):
            if count > most:
                key = f"barnabas.{what.replace(' ', '.').lower()}.max"
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION, f"There would be {count} {what}, {most} are allowed ({key})"
                )


Room = Iterator[tuple[int, int, str]]
"""How many there would be, how many there may be, and of what: the words of the key."""


def _partitions(image: ClusterImage, new: list[Message], limits: MetadataLimits) -> Room:
    count = sum([len(topic.partitions) for topic in image.topics.values()]) + len(new)
    yield count, limits.partitions, "partitions"


def _acls(image: ClusterImage, new: list[Message], limits: MetadataLimits) -> Room:
    yield len(image.acls) + len(new), limits.acls, "ACLs"


def _credentials(image: ClusterImage, new: list[Message], limits: MetadataLimits) -> Room:
    names = {(record.name, record.mechanism) for record in new if isinstance(record, UserScramCredentialRecord)}
    count = len(image.scram) + len(names - image.scram.keys())
    if names - image.scram.keys():
        yield count, limits.scram_credentials, "SCRAM credentials"


def _tokens(image: ClusterImage, new: list[Message], limits: MetadataLimits) -> Room:
    owners = Counter(
        token.owner for token in new if isinstance(token, DelegationTokenRecord) and token.token_id not in image.tokens
    )
    if not owners:
        return  # renewed ones
    count = len(image.tokens) + owners.total()
    yield count, limits.delegation_tokens, "delegation tokens"
    for token in image.tokens.values():
        if token.owner in owners:
            owners[token.owner] += 1
    most = limits.delegation_tokens_of_owner
    for count in owners.values():
        yield count, most, "delegation tokens of owner"


def _quotas(image: ClusterImage, new: list[Message], limits: MetadataLimits) -> Room:
    entities = {
        tuple(sorted(((part.entity_type, part.entity_name) for part in record.entity), key=itemgetter(0)))
        for record in new
        if isinstance(record, ClientQuotaRecord) and not record.remove
    }
    fresh = [entity for entity in entities if entity not in image.quotas]
    if fresh:
        count = len(image.quotas) + len(fresh)
        yield count, limits.client_quotas, "client quotas"


def _configs(image: ClusterImage, new: list[Message], limits: MetadataLimits) -> Room:
    fresh = {
        (record.resource_type, record.resource_name)
        for record in new
        if isinstance(record, ConfigRecord) and record.resource_type in _NAMED and record.value is not None
    } - image.configs.keys()
    if fresh:
        count = sum([kind in _NAMED for kind, _ in image.configs]) + len(fresh)
        yield count, limits.config_resources, "config resources"


_CHECKS: Final[dict[type[Message], Callable[[ClusterImage, list[Message], MetadataLimits], Room]]] = {
    PartitionRecord: _partitions,
    AccessControlEntryRecord: _acls,
    UserScramCredentialRecord: _credentials,
    DelegationTokenRecord: _tokens,
    ClientQuotaRecord: _quotas,
    ConfigRecord: _configs,
}
