"""The follower's side of a fetch session: each request names only the partitions that have changed (KIP-227, R20).

Pure: the fetcher sets what to fetch of each partition, and gets the fields of the next request. A leader that keeps no
session (id 0) is sent everything each time. After any error the next request is full; it closes the old session.
Source: Kafka's `FetchSessionHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequestFetchPartition, FetchRequestFetchTopic, FetchRequestForgottenTopic

PartitionKey = tuple[bytes, int]
"""Topic id and index."""

_MAX_EPOCH: Final = 2**31 - 1


class PartitionFields(NamedTuple):
    """The fields of one partition in a request."""

    topic: str
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchSession:
    """One session with one leader."""

    __slots__ = ("_epoch", "_forgotten", "_id", "_updates", "partitions")

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self.partitions: dict[PartitionKey, PartitionFields] = {}
        """The fields that the leader has, or gets with the next request."""
        self._updates: dict[PartitionKey, None] = {}
        self._forgotten: dict[PartitionKey, str] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request is full: it has every partition, in the order in which they were added."""
        return self._epoch == 0

    def is_known_to_leader(self, key: PartitionKey) -> bool:
        """Whether the leader has the partition in its session: it does not repeat to it what it has answered before."""
        return key in self.partitions or key in self._forgotten

    def set(self, key: PartitionKey, fields: PartitionFields) -> None:
        """Set the fields of a partition, from the next request on."""
        known = self.partitions.pop(key, None)
        self.partitions[key] = fields  # at the end: a full request names first the partitions that wait longest
        if known != fields:
            self._updates[key] = None
            self._forgotten.pop(key, None)

    def forget(self, key: PartitionKey) -> None:
        """Stop fetching a partition, for good or for now."""
        known = self.partitions.pop(key, None)
        if known is not None:
            self._updates.pop(key, None)
            self._forgotten[key] = known.topic

    def next_request(self) -> tuple[int, int, list[FetchRequestFetchTopic], list[FetchRequestForgottenTopic]]:
        """Session id, session epoch, partitions and forgotten partitions of the next request."""
        keys: Iterable[PartitionKey] = self.partitions if self.is_new else self._updates
        topics: dict[bytes, FetchRequestFetchTopic] = {}
        for key in keys:
            fields = self.partitions[key]
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchRequestFetchTopic(topic=fields.topic, topic_id=key[0], partitions=[])
            topic.partitions.append(
                FetchRequestFetchPartition(
                    partition=key[1],
                    current_leader_epoch=fields.leader_epoch,
                    fetch_offset=fields.fetch_offset,
                    last_fetched_epoch=fields.last_fetched_epoch,
                    log_start_offset=fields.log_start_offset,
                    partition_max_bytes=fields.max_bytes,
                )
            )
        forgotten: dict[bytes, FetchRequestForgottenTopic] = {}
        if not self.is_new:
            for (topic_id, index), name in self._forgotten.items():
                forgotten_topic = forgotten.setdefault(
                    topic_id, FetchRequestForgottenTopic(topic=name, topic_id=topic_id, partitions=[])
                )
                forgotten_topic.partitions.append(index)
        self._updates.clear()
        self._forgotten.clear()
        return self._id, self._epoch, list(topics.values()), list(forgotten.values())

    def answered(self, session_id: int) -> None:
        """The request was answered without an error of the session."""
        if self.is_new and session_id == 0:
            return  # the leader keeps none
        if self.is_new:
            self._id = session_id
        elif session_id == 0:  # the leader has closed it
            self.failed()
            return
        self._epoch = self._epoch + 1 if self._epoch < _MAX_EPOCH else 1

    def failed(self, error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR) -> None:
        """The request has failed: begin again with a full one."""
        if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id = 0
        self._epoch = 0
        self._updates.clear()
        self._forgotten.clear()
