"""The state of share partitions, wherever its share coordinator is (Kafka's `PersisterStateManager`, KIP-932).

Share partition leaders and group coordinators call this. On a single node a request goes to the coordinator directly.
In a cluster it goes to the broker that leads the partition of the state topic; items for the same broker and group are
sent in one request. If the coordinator has moved, is loading or cannot be reached, the request is repeated, `ATTEMPTS`
times in all, at the broker that the metadata has by then.

Invariant: the requests about one share partition are sent one after the other, the second once the first is answered,
so that a repetition never overtakes a later write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.config.keys.general import REQUEST_TIMEOUT_MS
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.node_queues import NodeQueues
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.coordinators.share_coordinators import ShareCoordinators
    from barnabas.broker.coordinators.share_state_requests import StateRequest
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.groups.share_state import (
        DeleteShareGroupStateResponsePartitionResult,
        InitializeShareGroupStateRequestPartitionData,
        InitializeShareGroupStateResponsePartitionResult,
        ReadShareGroupStateRequestPartitionData,
        ReadShareGroupStateResponsePartitionResult,
        ReadShareGroupStateSummaryResponsePartitionResult,
        WriteShareGroupStateRequestPartitionData,
        WriteShareGroupStateResponsePartitionResult,
    )

ATTEMPTS: Final = 8
RETRY_S: Final = 0.1
"""Time until a request is repeated the first time; it doubles with each attempt: 13 s in all."""

_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors after which another attempt may find the coordinator."""


class ShareStates:
    """Sends requests about share partitions to their share coordinators."""

    def __init__(self, services: BrokerServices, shares: ShareCoordinators) -> None:
        self._services = services
        self._shares = shares
        self._queues: NodeQueues[StateRequest] | None = None
        self._waiting: dict[SharePartitionKey, deque[StateRequest]] = {}
        """Has a queue, which may be empty, for every share partition with a request that is not answered."""

    # ---- the requests, as in `ShareCoordinators`

    def initialize(
        self,
        key: SharePartitionKey,
        request: InitializeShareGroupStateRequestPartitionData,
        reply: Callable[[InitializeShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Initialize a share partition at an offset; -1 lets its leader choose one."""
        self._ask("initialize", key, request, reply)

    def read(
        self,
        key: SharePartitionKey,
        request: ReadShareGroupStateRequestPartitionData,
        reply: Callable[[ReadShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Read the whole state of a share partition, and fence older leaders."""
        self._ask("read", key, request, reply)

    def write(
        self,
        key: SharePartitionKey,
        request: WriteShareGroupStateRequestPartitionData,
        reply: Callable[[WriteShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Write delivery states of records; the reply is sent when they are committed."""
        self._ask("write", key, request, reply)

    def delete(
        self, key: SharePartitionKey, reply: Callable[[DeleteShareGroupStateResponsePartitionResult], None]
    ) -> None:
        """Delete the state of a share partition."""
        self._ask("delete", key, None, reply)

    def read_summary(
        self, key: SharePartitionKey, reply: Callable[[ReadShareGroupStateSummaryResponsePartitionResult], None]
    ) -> None:
        """Read the start offset and the epochs of a share partition."""
        self._ask("read_summary", key, None, reply)

    def _ask(self, name: str, key: SharePartitionKey, data: Any, reply: Callable[[Any], None]) -> None:
        """Send a request; in a cluster after the ones about the same share partition that are not answered yet."""
        if self._services.image().brokers.keys() <= {self._services.config.node_id}:
            arguments = (key, reply) if data is None else (key, data, reply)
            getattr(self._shares, name)(*arguments)
            return
        from barnabas.broker.coordinators.share_state_requests import KINDS, StateRequest

        request = StateRequest(KINDS[name], key, data, reply)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(request)
            return
        self._waiting[key] = deque()
        self._try(request, 1)

    def _try(self, request: StateRequest, attempt: int) -> None:
        """Send a request to the coordinator that the metadata has now."""
        leader = self._shares.leader_of(str(request.key))
        end = partial(self._end, request, attempt)
        if leader < 0 or leader == self._services.config.node_id:
            arguments = (request.key, end) if request.data is None else (request.key, request.data, end)
            getattr(self._shares, request.kind.name)(*arguments)  # it creates the topic if that is missing
        else:
            self._remote().add(leader, request._replace(reply=end))

    def _end(self, request: StateRequest, attempt: int, result: Any) -> None:
        """Repeat a request whose coordinator was not found, else answer it and send the request that waits for it."""
        if result.error_code in _MOVED and attempt < ATTEMPTS:
            retry_at = self._services.loop.now() + RETRY_S * 2 ** (attempt - 1)
            self._services.loop.timers.at(retry_at, lambda: self._try(request, attempt + 1))
            return
        waiting = self._waiting[request.key]
        call_guarded(f"The response about the share partition {request.key}", request.reply, result)
        if waiting:
            self._try(waiting.popleft(), 1)
        else:
            del self._waiting[request.key]

    def _remote(self) -> NodeQueues[StateRequest]:
        if self._queues is None:
            from barnabas.broker.coordinators.node_queues import NodeQueues
            from barnabas.broker.coordinators.share_state_requests import build

            services = self._services
            self._queues = NodeQueues(
                services.loop,
                lambda node_id: services.client(node_id, "share-state"),
                services.config[REQUEST_TIMEOUT_MS] / 1000,
                build=build,
                on_response=_finish,
                key=lambda request: request.key,
                group=lambda request: (request.kind.name, request.key.group_id),
            )
        return self._queues


def _finish(requests: Sequence[StateRequest], response: Any) -> None:
    """Give every request its result; one that the response omits gets an error."""
    results: dict[tuple[Any, int], Any] = {}
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    if isinstance(response, KafkaError):
        error = ErrorCode.NETWORK_EXCEPTION if response.code == ErrorCode.REQUEST_TIMED_OUT else response.code
    else:
        results = {
            (topic.topic_id, result.partition): result for topic in response.results for result in topic.partitions
        }
    for request in requests:
        key = request.key
        result = results.get((key.topic_id, key.partition))
        if result is None:
            result = request.kind.error(key, error, error.name)
        call_guarded(f"The response about the share partition {key}", request.reply, result)
