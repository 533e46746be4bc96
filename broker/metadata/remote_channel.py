"""The channel to the active controller over the network.

Each purpose has a connection with one request in flight, so that a heartbeat does not wait for a large creation. A
request is sent to the leader that is known; while none is, it waits. NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER, network
errors and a leader that has changed repeat it, after a pause that grows from controller.quorum.retry.backoff.ms to a
second, until its time is up: then it fails with REQUEST_TIMED_OUT. Responses that cannot be decoded fail at once:
repeating such a request would repeat its effect. Source: Kafka's `NodeToControllerChannelManagerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.event_loop.waiting import Future, sleep_until, start, until
from barnabas.broker.net.client.network_client import NetworkClient
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.metadata.quorum_leader import QuorumLeader
    from barnabas.broker.net.client.login import Login
    from barnabas.broker.net.client.outgoing import Connect
    from barnabas.wire.schema import Message

MAX_BACKOFF_S: Final = 1.0
LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})
RETRIED_RESPONSES: Final = frozenset({ErrorCode.NETWORK_EXCEPTION, *LEADER_ERRORS})
RETRIED: Final = RETRIED_RESPONSES | {ErrorCode.REQUEST_TIMED_OUT}
"""The errors of an attempt that got no response; REQUEST_TIMED_OUT in a response is the controller's."""

_PURPOSES: Final = {
    ApiKey.BROKER_REGISTRATION: "lifecycle",
    ApiKey.BROKER_HEARTBEAT: "lifecycle",
    ApiKey.ALTER_PARTITION: "alter-partition",
    ApiKey.ALLOCATE_PRODUCER_IDS: "producer-ids",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "directory-assignments",
}
_OTHER_PURPOSE: Final = "forwarding"


class RemoteChannel:
    """Sends requests to the active controller (`ControllerChannel`)."""

    def __init__(
        self,
        loop: Loop,
        connect: Connect,
        quorum: QuorumLeader,
        *,
        client_id: str,
        timeout_s: float,
        backoff_s: float,
        software_version: str = "unknown",
        login: Callable[[], Login] | None = None,
    ) -> None:
        """`timeout_s` is the default time of a request, `backoff_s` the first pause.

        `login` makes the log-in of each connection; None: they need none.
        """
        self._login = login
        self._loop = loop
        self._connect = connect
        self._quorum = quorum
        self._client_id = client_id
        self._software_version = software_version
        self._timeout_s = timeout_s
        self._backoff_s = backoff_s
        self._clients: dict[str, NetworkClient] = {}
        self._pending: dict[Future[Any], None] = {}
        self._without_leader: dict[Future[None], None] = {}
        self._is_closed = False
        quorum.on_change.append(self._leader_changed)

    def send(self, request: Message, then: Callable[[Any], None], *, timeout_s: float | None = None) -> None:
        """Send a request; `then` gets the response's message, or a KafkaError, never within the call."""
        deadline = self._loop.now() + (self._timeout_s if timeout_s is None else timeout_s)

        def finish(outcome: Any) -> None:
            call_guarded("A callback of a request to the controller", then, outcome)

        start(self._ask(request, deadline), self._loop.slices, finish)

    def close(self) -> None:
        """Fail all requests that wait, and all later ones, with NETWORK_EXCEPTION."""
        self._is_closed = True
        for outcome in list(self._pending):
            outcome.complete(_closed())
        for client in self._clients.values():
            client.close()

    async def _ask(self, request: Message, deadline: float) -> Any:
        """The response to a request, unless its time is up before, or the channel is closed."""
        loop = self._loop
        if self._is_closed:
            await sleep_until(loop.timers, loop.now())
            raise _closed()
        outcome: Future[Any] = Future()
        self._pending[outcome] = None
        attempts = start(self._attempts(request, deadline), loop.slices, outcome.complete)
        try:
            response = await until(loop.timers, deadline, outcome, None)
        finally:
            del self._pending[outcome]
            if attempts is not None:
                attempts.cancel()
        if response is None:
            text = "The controller has not answered in time."
            if self._quorum.leader_address() is None:
                text = "No controller has been found in time."
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)
        return response

    async def _attempts(self, request: Message, deadline: float) -> Any:
        """Send a request to the current leader until one answers."""
        loop = self._loop
        count = 0
        while True:
            while self._quorum.leader_address() is None:
                await self._leader()
            future: Future[Any] = Future()
            time_left = max(deadline - loop.now(), 0.001)
            self._client(request).send(request, future.complete, timeout_s=time_left)
            try:
                response = await future
                if getattr(response, "error_code", 0) not in RETRIED_RESPONSES:
                    return response
            except KafkaError as error:
                if error.code not in RETRIED:
                    raise
            backoff_s = min(self._backoff_s * 2 ** min(count, 10), MAX_BACKOFF_S)
            count += 1
            await sleep_until(loop.timers, loop.now() + backoff_s)

    async def _leader(self) -> None:
        """Wait until another leader is known."""
        future: Future[None] = Future()
        self._without_leader[future] = None
        try:
            await future
        finally:
            del self._without_leader[future]

    def _client(self, request: Message) -> NetworkClient:
        purpose = _PURPOSES.get(ApiKey(request.api_key), _OTHER_PURPOSE)
        client = self._clients.get(purpose)
        if client is None:
            client = self._clients[purpose] = NetworkClient(
                self._loop,
                self._connect,
                self._quorum.leader_address,
                client_id=f"{self._client_id}-{purpose}",
                software_version=self._software_version,
                login=self._login,
            )
        return client

    def _leader_changed(self) -> None:
        """Repeat requests to the old leader at the new one, and send those that waited for a leader."""
        if self._quorum.leader_address() is None:
            return
        for client in self._clients.values():
            client.disconnect_unless(self._quorum.leader_address())
        for future in list(self._without_leader):
            future.complete()


def _closed() -> KafkaError:
    return KafkaError(ErrorCode.NETWORK_EXCEPTION, "The broker is shutting down.")
