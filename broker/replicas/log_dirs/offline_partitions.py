"""The partitions that cannot be served: the reasons, and which are opened again once a resource is available."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.storage.directories.log_dirs import LogDirs

logger = logging.getLogger("kafka.server.ReplicaManager")


OFFLINE: Final = (
    "Partition %s-%d is offline, the others are served: %s. Stop the broker and look at it with "
    "'barnabas storage check'; 'barnabas storage recover' repairs what can be repaired"
)
LED_BY_ANOTHER: Final = (
    "The replica %s-%d of this broker is offline, the others are served: %s. If another replica in sync leads the "
    "partition, it is filled from that one again. Else stop the broker and look at it with 'barnabas storage check'; "
    "'barnabas storage recover' repairs what can be repaired"
)


class OfflinePartitions:
    """The partitions that are offline. Their logs are not open; their files stay unchanged."""

    def __init__(self, loop: Loop, log_dirs: LogDirs) -> None:
        self._loop = loop
        self._log_dirs = log_dirs
        self.reasons: dict[tuple[str, int], str] = {}
        """(topic, index) -> reason."""
        self.to_reopen: dict[tuple[bytes, int], None] = {}
        """(topic id, index) of those that failed with a transient error."""

    def error(self, topic: str, index: int) -> KafkaError:
        """The error for a request to a partition that is not served: it is offline, or does not exist."""
        reason = self.reasons.get((topic, index))
        if reason is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {topic}-{index} is offline: {reason}")

    def add(self, topic: str, index: int, reason: str, *, has_peers: bool) -> None:
        """Take a partition offline until the next start, or until another replica in sync leads it."""
        self.add_quietly(topic, index, reason)
        logger.error(LED_BY_ANOTHER if has_peers else OFFLINE, topic, index, reason.rstrip("."))

    def add_quietly(self, topic: str, index: int, reason: str) -> None:
        """Take a partition offline until the next start; the caller logs it."""
        self.reasons[topic, index] = reason
        self._log_dirs.take_offline(topic, index)

    def add_for_now(self, topic: TopicImage, index: int, error: OSError) -> None:
        """Take a partition offline until a resource is available again."""
        self.add_quietly(topic.name, index, str(error))
        if (topic.topic_id, index) not in self.to_reopen:
            logger.error("Partition %s-%d is offline until it can be opened: %s", topic.name, index, error)
        self.to_reopen[topic.topic_id, index] = None

    def remove(self, topic: str, index: int) -> None:
        """Treat a partition as online, so that its log can be opened."""
        self.reasons.pop((topic, index), None)
        self._log_dirs.bring_online(topic, index)

    def delete(self, topic: str, index: int) -> None:
        """Delete the files of a partition whose topic was deleted, if it is offline."""
        if self.reasons.pop((topic, index), None) is None:
            return
        log_dir = self._log_dirs.dir_of(topic, index)
        if log_dir is not None and log_dir.failure is not None:
            return  # the next start sets it aside
        try:
            self._log_dirs.delete_offline(topic, index, now=self._loop.now())
        except OSError as error:
            logger.error("Cannot remove the files of the offline partition %s-%d: %s", topic, index, error)
