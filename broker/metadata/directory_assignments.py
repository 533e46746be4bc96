"""Tells the controller in which log directory each replica of this broker is (KIP-858).

The controller assigns replicas itself while a broker has one directory. With several, the broker chooses; and an empty
disk in the place of a lost one is another directory. Each replica whose directory the image does not have is reported,
since the controller elects no leader in a directory that it does not know to be online. One request is in flight, with
`BATCH` replicas at most; replicas that it does not settle are checked again after a pause, which doubles while nothing
is settled. Replicas that the controller has accepted are checked again, too, if the metadata does not have them within
`CHECK_S`. Source: Kafka's `AssignmentsManager`, which does not check the metadata.

A replica that cannot serve is reported as lost, in the reserved directory that is never online, if another replica in
sync can lead: the controller takes it out of the ISR and elects the other one (R28). When it can serve again its
directory is reported. But if its log is new and it is in the ELR, only when it is in the ISR again: replicas in the ELR
may be elected, and the leader does not check directories when it finds a replica in sync. After a start it is not known
whether a lost replica's log was new: then the broker claims no epoch, and the controller takes it out of the ELRs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.delta import FEATURES
from barnabas.coord.cluster.partitions.leader_changes import is_online
from barnabas.coord.cluster.partitions.partition_change import DIRECTORIES_SINCE
from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    AssignReplicasToDirsResponse,
)
from barnabas.wire.types import Uuid, uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.metadata.controller_channel import ControllerChannel
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage
    from barnabas.storage.directories.log_dirs import LogDirs

logger = logging.getLogger("kafka.server.AssignmentsManager")

BATCH: Final = 2000
RETRY_S: Final = 0.5
MAX_RETRY_S: Final = 8.0
CHECK_S: Final = 5.0
"""How long the metadata may take to have an assignment that the controller has accepted, seconds."""
LOST_AGAIN_S: Final = 5.0
"""When a replica is reported as lost again that is in the ISR nevertheless, seconds."""
PARTITIONS_PER_STEP: Final = 500

_Replica = tuple[Uuid, int]
_TAKEN_FOR_ONLINE: Final = frozenset({UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY})


class DirectoryAssignments:
    """Reports the directories of this broker's replicas."""

    def __init__(
        self,
        loop: Loop,
        log_dirs: LogDirs,
        channel: ControllerChannel,
        *,
        node_id: int,
        image: Callable[[], ClusterImage],
        broker_epoch: Callable[[], int],
        can_serve: Callable[[TopicImage, int], bool],
        is_new: Callable[[Uuid, int], bool],
    ) -> None:
        """`can_serve` says whether a replica of this broker has a log that it can read and write, `is_new` whether that
        log was made anew and has not been in the ISR since.
        """
        self._loop = loop
        self._log_dirs = log_dirs
        self._channel = channel
        self._node_id = node_id
        self._image = image
        self._broker_epoch = broker_epoch
        self._can_serve = can_serve
        self._is_new = is_new
        self._to_report: dict[_Replica, None] = {}
        self._accepted: dict[_Replica, float] = {}
        """The accepted assignments, and when the metadata must have them; the first is due first."""
        self._is_busy = False
        self._lost_again_at: dict[_Replica, float] = {}
        self._timer: Timer | None = None
        self._is_checking = False
        self._pause_s = RETRY_S
        self._reported: frozenset[ErrorCode] = frozenset()
        """The errors of the last response, which were logged."""

    def apply(self, delta: ClusterDelta) -> Steps[None] | None:
        """Check the replicas that have changed; called after the partitions have been opened."""
        if not (delta.new_partitions or delta.changed_partitions):
            if FEATURES in delta.other_changes:
                self._report()
            return None
        return self._look({**delta.new_partitions, **delta.changed_partitions})

    def look_at_all(self) -> Steps[None]:
        """Check all replicas of this broker, after a start."""
        topics = list(self._image().topics.values())
        yield from self._look({(topic.topic_id, index): topic for topic in topics for index in topic.partitions})

    def look_at(self, replicas: Sequence[_Replica]) -> Steps[None]:
        """Check these replicas, which can serve now or cannot any more."""
        topics = self._image().topics_by_id
        yield from self._look({replica: topics[replica[0]] for replica in replicas if replica[0] in topics})

    def _look(self, partitions: dict[_Replica, TopicImage]) -> Steps[None]:
        for count, (replica, topic) in enumerate(partitions.items(), 1):
            if self._directory_to_report(replica, topic) is not None:
                self._to_report[replica] = None
            if count % PARTITIONS_PER_STEP == 0:
                yield None
        self._report()

    def _directory_to_report(self, replica: _Replica, topic: TopicImage | None) -> Uuid | None:
        """The directory to report of a replica, None if the image has it."""
        partition = None if topic is None else topic.partitions.get(replica[1])
        if topic is None or partition is None or self._node_id not in partition.replicas:
            return None
        log_dir = self._log_dirs.dir_to_tell(topic.name, replica[1])
        if log_dir is not None and log_dir.failure is not None:
            return None  # heartbeats report it
        assigned = partition.directories[partition.replicas.index(self._node_id)]
        is_lost = assigned == LOST_DIRECTORY
        is_counted_on = self._node_id in partition.isr
        if self._can_serve(topic, replica[1]):
            if is_lost and not is_counted_on and self._node_id in partition.elr and self._is_new(*replica):
                return None
        elif self._another_can_lead(partition):
            return None if is_lost and not is_counted_on else LOST_DIRECTORY
        if log_dir is None:
            return None
        if assigned in _TAKEN_FOR_ONLINE and len(self._log_dirs.dirs) == 1:
            return None  # the controller considers it online
        directory = uuid_from_text(log_dir.directory_id)
        return None if assigned == directory else directory

    def _another_can_lead(self, partition: PartitionImage) -> bool:
        """Whether the controller can elect another replica that is in sync."""
        brokers = self._image().brokers
        for replica, directory in zip(partition.replicas, partition.directories, strict=True):
            if replica == self._node_id or replica not in partition.isr:
                continue
            broker = brokers.get(replica)
            if broker is None or broker.fenced or broker.in_controlled_shutdown:
                continue
            if is_online(directory, broker.directories):
                return True
        return False

    def _report(self) -> None:
        image = self._image()
        if self._is_busy or not self._to_report:
            return
        if self._broker_epoch() < 0:
            self._report_later()  # the broker registers again
            return
        if image.metadata_version < DIRECTORIES_SINCE:
            return  # the metadata has no directories yet; `apply` notices when it may
        directories: dict[Uuid, dict[Uuid, list[int]]] = {}
        sent: list[_Replica] = []
        now, again_at = self._loop.now(), inf
        for replica in list(self._to_report)[:BATCH]:
            directory = self._directory_to_report(replica, image.topic_by_id(replica[0]))
            not_before = self._not_before(replica, directory, now)
            if directory is None:
                del self._to_report[replica]
            elif not_before > now:
                again_at = min(again_at, not_before)
            else:
                sent.append(replica)
                directories.setdefault(directory, {}).setdefault(replica[0], []).append(replica[1])
        if sent:
            self._is_busy = True
            self._channel.send(self._request(directories), lambda outcome: self._finish(sent, outcome))
        elif again_at < inf:
            self._report_at(again_at)

    def _not_before(self, replica: _Replica, directory: Uuid | None, now: float) -> float:
        """When this may be reported: the loss of a replica only every `LOST_AGAIN_S`."""
        if directory != LOST_DIRECTORY:
            self._lost_again_at.pop(replica, None)
            return now
        not_before = self._lost_again_at.get(replica, now)
        if not_before <= now:
            self._lost_again_at[replica] = now + LOST_AGAIN_S
        return not_before

    def _request(self, directories: dict[Uuid, dict[Uuid, list[int]]]) -> AssignReplicasToDirsRequest:
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id=directory,
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in indexes
                            ],
                        )
                        for topic_id, indexes in topics.items()
                    ],
                )
                for directory, topics in directories.items()
            ],
        )

    def _finish(self, sent: list[_Replica], outcome: AssignReplicasToDirsResponse | KafkaError) -> None:
        self._is_busy = False
        if isinstance(outcome, KafkaError):
            refused = {outcome.code}
        elif outcome.error_code:
            refused = {ErrorCode(outcome.error_code)}
        else:
            refused = self._settle(outcome)
        if refused:
            for replica in sent:
                if replica in self._to_report:
                    self._lost_again_at.pop(replica, None)
        if refused - self._reported:
            names = ", ".join(sorted(code.name for code in refused))
            logger.warning(
                "The controller did not accept the directories of all %d replicas, reporting them again: %s",
                *(len(sent), names),
            )
        self._reported = frozenset(refused)
        self._pause_s = min(2 * self._pause_s, MAX_RETRY_S) if refused else RETRY_S
        self._check_later()
        if not refused and self._to_report and next(iter(self._to_report)) not in sent:
            self._report_at(self._loop.now())  # all of these are settled, but there were more
        elif self._to_report:
            self._report_later()

    def _settle(self, response: AssignReplicasToDirsResponse) -> set[ErrorCode]:
        """Record the assignments that the controller has accepted; return the errors of the others."""
        refused: set[ErrorCode] = set()
        due = self._loop.now() + CHECK_S
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    replica = (topic.topic_id, partition.partition_index)
                    if partition.error_code:
                        refused.add(ErrorCode(partition.error_code))
                    elif replica in self._to_report:
                        del self._to_report[replica]
                        self._accepted.pop(replica, None)
                        self._accepted[replica] = due
        return refused

    def _report_later(self) -> None:
        self._report_at(self._loop.now() + self._pause_s)

    def _report_at(self, when: float) -> None:
        """Report at `when`, or earlier if the timer is already set to an earlier time."""
        if self._timer is not None:
            if self._timer.deadline <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.timers.at(when, self._report_scheduled)

    def _report_scheduled(self) -> None:
        self._timer = None
        self._report()

    # -- accepted assignments

    def _check_later(self) -> None:
        if self._accepted and not self._is_checking:
            self._is_checking = True
            self._loop.timers.at(max(next(iter(self._accepted.values())), self._loop.now()), self._check)

    def _check(self) -> None:
        """Report again the assignments that the controller accepted long ago and the metadata does not have."""
        self._is_checking = False
        now, image, missing = self._loop.now(), self._image(), 0
        for replica, due in list(islice(self._accepted.items(), BATCH)):
            if due > now:
                break
            del self._accepted[replica]
            if replica in self._to_report:
                continue
            if self._directory_to_report(replica, image.topic_by_id(replica[0])) is None:
                self._lost_again_at.pop(replica, None)
            else:
                self._to_report[replica] = None
                missing += 1
        if missing:
            logger.warning(
                "The controller accepted the directories of %d replicas, but the metadata has not had them for %g s: "
                "reporting them again",
                *(missing, CHECK_S),
            )
            self._report()
        self._check_later()


def assign_directory(
    node_id: int, broker_epoch: int, directory: Uuid, topic_id: Uuid, index: int, then: Callable[[ErrorCode], None]
) -> tuple[AssignReplicasToDirsRequest, Callable[[AssignReplicasToDirsResponse | KafkaError], None]]:
    """The request that assigns one replica, and the callback for its answer."""
    partition = AssignReplicasToDirsRequestPartitionData(partition_index=index)
    topic = AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=[partition])
    request = AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[AssignReplicasToDirsRequestDirectoryData(id=directory, topics=[topic])],
    )

    def read_response(outcome: AssignReplicasToDirsResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            then(outcome.code)
            return
        codes = [outcome.error_code]
        for result in outcome.directories:
            codes += [entry.error_code for of_topic in result.topics for entry in of_topic.partitions]
        then(ErrorCode(next((code for code in codes if code), 0)))

    return request, read_response
