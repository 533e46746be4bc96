"""A share group on a faulty disk: what was accepted is never delivered again, everything else is."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import share_groups as g
from barnabas.wire.messages.groups import share_state as s
from tests.crash.faults.session import Session

GROUP, TOPIC = "s", "a"
ACCEPT = 1
VERSION = 2

_LOST_SESSION = (E.SHARE_SESSION_NOT_FOUND, E.INVALID_SHARE_SESSION_EPOCH)
"""A request before was not answered, so that member and broker do not agree on the session."""


class ShareMember:
    """A member of the group, with a new session whenever a request has failed."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self._restarts = 0
        self._epoch = 0

    @property
    def _topic_id(self) -> bytes:
        topic_id: bytes = self._session.memory.broker.image.topics[TOPIC].topic_id
        return topic_id

    def _begin_again(self) -> None:
        self._restarts += 1
        self._epoch = 0

    def initialize(self) -> int | None:
        """What the group coordinator does when the group subscribes; the error code."""
        partition = s.InitializeShareGroupStateRequestPartitionData(partition=0, state_epoch=0, start_offset=0)
        request = s.InitializeShareGroupStateRequest(
            group_id=GROUP, topics=[s.InitializeStateData(topic_id=self._topic_id, partitions=[partition])]
        )
        response = self._session.ask(request, 0, s.InitializeShareGroupStateResponse)
        return None if response is None else int(response.results[0].partitions[0].error_code)

    def take(self) -> tuple[int | None, list[tuple[int, int]]]:
        """Fetch; the error code, and the ranges of offsets that were acquired."""
        partition = g.ShareFetchRequestFetchPartition(partition_index=0)
        topics = [g.ShareFetchRequestFetchTopic(topic_id=self._topic_id, partitions=[partition])]
        request = g.ShareFetchRequest(
            group_id=GROUP,
            member_id=f"{self._name}-{self._restarts}",
            share_session_epoch=self._epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=topics if self._epoch == 0 else [],
        )
        response = self._session.ask(request, VERSION, g.ShareFetchResponse)
        partitions = [data for topic in response.responses for data in topic.partitions] if response is not None else []
        code = None if response is None else response.error_code or sum(data.error_code for data in partitions)
        if code != 0:
            self._begin_again()
            return None if code in _LOST_SESSION else code, []
        self._epoch += 1
        return 0, [
            (acquired.first_offset, acquired.last_offset) for data in partitions for acquired in data.acquired_records
        ]

    def accept(self, first: int, last: int) -> int | None:
        """Accept a range of offsets; the error code."""
        batch = g.ShareAcknowledgeRequestAcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=[ACCEPT]
        )
        partition = g.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        request = g.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=f"{self._name}-{self._restarts}",
            share_session_epoch=self._epoch,
            topics=[g.AcknowledgeTopic(topic_id=self._topic_id, partitions=[partition])],
        )
        response = self._session.ask(request, VERSION, g.ShareAcknowledgeResponse)
        code = None if response is None else response.error_code or response.responses[0].partitions[0].error_code
        if code is None:
            self._begin_again()
        elif not response.error_code:  # type: ignore[union-attr]
            self._epoch += 1
        return code
