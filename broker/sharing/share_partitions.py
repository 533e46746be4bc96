"""The share partitions that are served on this broker (KIP-932, rule G5).

A share partition is served by the leader of its partition. It is loaded from the share coordinator when its first
member fetches. It is removed, and loaded again by the next request, when its state is stale (fenced), when the last
session of its group ends, when its partition is removed, and when leader or leader epoch change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.share_and_streams import GROUP_SHARE_MAX_SHARE_SESSIONS
from barnabas.broker.sharing.dead_letters import DeadLetterQueues
from barnabas.broker.sharing.live_share_partition import Environment, LiveSharePartition
from barnabas.broker.sharing.persister import Persister
from barnabas.broker.sharing.share_sessions import ShareSession, ShareSessions
from barnabas.coord.cluster.node_records import SHARE_VERSION_FEATURE
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.coordinators.share_states import ShareStates
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.groups.settings import GroupConfigs, GroupSettings
    from barnabas.coord.share_state.key import SharePartitionKey

SHARE_VERSION_WITH_DEAD_LETTERS = 2


class SharePartitions:
    """All share partitions that are served, and the share sessions of the members that read them."""

    def __init__(
        self,
        services: BrokerServices,
        shares: ShareStates,
        on_reset: list[Callable[[SharePartitionKey, int], None]],
        group_configs: GroupConfigs,
        create_dead_letter_queue: Callable[[str, Callable[[KafkaError | None], None]], None],
        is_stopping: Callable[[], bool],
    ) -> None:
        """`on_reset` are the listeners of the share coordinators of this broker.

        `group_configs` returns the effective settings of a group; `is_stopping` whether the broker shuts down.
        """
        self._services = services
        self._group_configs = group_configs
        self._is_stopping = is_stopping
        self._live: dict[SharePartitionKey, LiveSharePartition] = {}
        limit = services.config[GROUP_SHARE_MAX_SHARE_SESSIONS]
        self.sessions = ShareSessions(limit, self._session_ended, self._group_emptied)
        dead_letters = DeadLetterQueues(services, group_configs, create_dead_letter_queue, is_stopping)
        self._environment = Environment(services.loop, Persister(shares), dead_letters)
        on_reset.append(self._reset)
        services.partitions.on_role_change.append(self._role_changed)

    def settings(self, group_id: str) -> GroupSettings:
        """The effective settings of a group, without a dead-letter queue before share.version 2 (KIP-1191)."""
        settings = self._group_configs(group_id)
        if settings.errors_deadletterqueue_topic_name and not self._has_dead_letter_queues():
            return settings._replace(errors_deadletterqueue_topic_name="")
        return settings

    def _has_dead_letter_queues(self) -> bool:
        return self._services.image().features.get(SHARE_VERSION_FEATURE, 0) >= SHARE_VERSION_WITH_DEAD_LETTERS

    def get(self, key: SharePartitionKey) -> LiveSharePartition:
        """A share partition, which may still be loading. KafkaError if loading failed, or it is not served here."""
        live = self._live.get(key)
        if live is None:
            partition = self._services.partitions.get_leader(key.topic_id, key.partition)
            if partition.is_internal:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            settings = partial(self.settings, key.group_id)
            live = LiveSharePartition(key, partition, settings, self._environment, self.remove)
            self._live[key] = live
            live.load()
        if live.error:
            self.remove(live)  # the next request loads it again
            raise KafkaError(live.error)
        return live

    def find(self, key: SharePartitionKey) -> LiveSharePartition | None:
        """The share partition if it is served already, or None."""
        return self._live.get(key)

    def remove(self, live: LiveSharePartition) -> None:
        """Stop serving a share partition; the next request loads it again."""
        if self._live.get(live.key) is live:
            del self._live[live.key]
        live.leave()

    def _role_changed(self, partition: Partition) -> None:
        """A share partition ends with the leadership, or the leader epoch, that it was loaded in."""
        for live in [live for live in self._live.values() if live.partition is partition]:
            self.remove(live)

    def _reset(self, key: SharePartitionKey, state_epoch: int) -> None:
        """The saved state was replaced by one of this epoch: remove the share partition unless its epoch is older."""
        live = self._live.get(key)
        if live is not None and (live.state is None or live.state.state_epoch >= state_epoch):
            self.remove(live)

    # ---- members

    def release(self, session: ShareSession, then: Callable[[], None]) -> None:
        """Release all records of a session's member; `then` is called once that is written."""
        held = [live for live in self._live.values() if live.key.group_id == session.group_id]
        open_count = len(held) + 1

        def released(_error: ErrorCode) -> None:
            nonlocal open_count
            open_count -= 1
            if not open_count:
                then()

        for live in held:
            live.release(session.member_id, released)
        released(ErrorCode.NONE)

    def _session_ended(self, session: ShareSession) -> None:
        if not self._is_stopping():  # otherwise the restart makes the records available
            self.release(session, _ignore)

    def _group_emptied(self, group_id: str) -> None:
        """The last session of a group has ended: load the state again for the next, administrators may change it."""
        for live in [live for live in self._live.values() if live.key.group_id == group_id]:
            self.remove(live)


def _ignore() -> None:
    """The result is not needed; errors are in the log."""
