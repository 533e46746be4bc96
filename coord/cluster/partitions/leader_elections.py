"""ElectLeaders, and the elections that the controller makes by itself: preferred leaders, and unclean ones if allowed.

Source: Kafka 4.4 `ReplicationControlManager.electLeaders`, `maybeBalancePartitionLeaders`, `maybeElectUncleanLeaders`.
KIP-183, KIP-460.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from enum import IntEnum
from typing import Final

from barnabas.coord.cluster.partitions.leader_changes import CHANGED_PER_STEP, LeaderChanges, PartitionPlace
from barnabas.coord.cluster.partitions.partition_change import Election
from barnabas.coord.cluster.topic_image import NO_LEADER, PartitionImage, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ReplicaElectionResult,
)
from barnabas.wire.schema import Message

MAX_ELECTIONS: Final = 1000
"""Elections that the controller makes at a time by itself, as in Kafka."""


class ElectionType(IntEnum):
    """What a client may ask for."""

    PREFERRED = 0
    UNCLEAN = 1


_MESSAGES: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}


def elect_leaders_steps(
    changes: LeaderChanges, request: ElectLeadersRequest
) -> Generator[None, None, tuple[list[Message], ElectLeadersResponse]]:
    """(records, response). If the request names no partitions, the ones that need no election are left out."""
    if request.topic_partitions is not None and not request.topic_partitions:
        return [], ElectLeadersResponse()  # as in Kafka, whatever the type
    if request.election_type not in set(ElectionType):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    kind = ElectionType(request.election_type)
    records: list[Message] = []
    response = ElectLeadersResponse()
    elected: set[tuple[str, int]] = set()
    count = 0
    for name, indexes in _requested(changes, request):
        topic_result = ReplicaElectionResult(topic=name)
        response.replica_election_results.append(topic_result)
        for index in indexes:
            result = ElectLeadersResponsePartitionResult(partition_id=index, error_message=None)
            try:
                if (name, index) in elected:
                    raise _error(ErrorCode.ELECTION_NOT_NEEDED)
                records.append(_elect(changes, name, index, kind))
                elected.add((name, index))
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
            if request.topic_partitions is not None or result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                topic_result.partition_result.append(result)
            count += 1
            if count % CHANGED_PER_STEP == 0:
                yield
    return records, response


def _requested(changes: LeaderChanges, request: ElectLeadersRequest) -> Iterator[tuple[str, list[int]]]:
    if request.topic_partitions is None:
        for topic in changes.image.topics.values():
            yield topic.name, list(topic.partitions)
    else:
        for entry in request.topic_partitions:
            yield entry.topic, entry.partitions


def _elect(changes: LeaderChanges, name: str, index: int, kind: ElectionType) -> Message:
    topic: TopicImage | None = changes.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    is_preferred = kind is ElectionType.PREFERRED
    if not needs_election(partition, kind):
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = changes.change(PartitionPlace(topic, index, partition))
    change.election = Election.PREFERRED if is_preferred else Election.UNCLEAN
    record = change.build()
    if record is None:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        raise _error(code)
    return record


def needs_election(partition: PartitionImage, kind: ElectionType) -> bool:
    """Whether a partition has another leader than its preferred one, or, for an unclean election, none."""
    if kind is ElectionType.PREFERRED:
        return partition.leader != partition.replicas[0]
    return partition.leader == NO_LEADER


def _error(code: ErrorCode) -> KafkaError:
    return KafkaError(code, _MESSAGES[code])


def balance_steps(changes: LeaderChanges) -> Generator[None, None, tuple[list[Message], bool]]:
    """(records, whether more are left) that give partitions back to their preferred leaders, where these can lead."""
    places = yield from changes.visit(lambda partition: partition.leader not in {NO_LEADER, partition.replicas[0]})
    return (yield from _elect_all(changes, places, Election.PREFERRED))


def unclean_steps(changes: LeaderChanges) -> Generator[None, None, tuple[list[Message], bool]]:
    """(records, whether more are left) that elect leaders uncleanly where the topic's config allows it.

    For partitions that lost their leader before the config was changed.
    """
    places = yield from changes.visit(lambda partition: partition.leader == NO_LEADER)
    allowed = [place for place in places if changes.settings.unclean_leader_election_enable(place.topic.name)]
    return (yield from _elect_all(changes, allowed, Election.UNCLEAN))


def _elect_all(
    changes: LeaderChanges, places: list[PartitionPlace], election: Election
) -> Generator[None, None, tuple[list[Message], bool]]:
    records: list[Message] = []
    for count, place in enumerate(places, 1):
        if len(records) >= MAX_ELECTIONS:
            return records, True
        change = changes.change(place)
        change.election = election
        record = change.build()
        if record is not None:
            records.append(record)
        if count % CHANGED_PER_STEP == 0:
            yield
    return records, False
