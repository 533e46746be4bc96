"""The life of a broker in its cluster: registered, caught up, unfenced, and drained before it stops.

STARTING: registered, waits until the controller has seen it read the metadata up to its own registration. RECOVERY:
caught up, fenced until its logs are open. RUNNING: serves clients. PENDING_CONTROLLED_SHUTDOWN: the controller moves
its leaders away, then lets it stop. A heartbeat has the state and the offset up to which the metadata is applied; one
is in flight at a time, and a broker that sends none for the time of its session is fenced until it sends one again.

An earlier incarnation whose session has not ended (DUPLICATE_BROKER_REGISTRATION, after kill -9) is waited for. A
broker epoch that the controller does not know any longer (STALE_BROKER_EPOCH) is renewed by registering again. Source:
Kafka 4.4 `BrokerLifecycleManager`. KIP-631, KIP-858, KIP-966.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import (
    BROKER_HEARTBEAT_INTERVAL_MS,
    BROKER_SESSION_TIMEOUT_MS,
    INITIAL_BROKER_REGISTRATION_TIMEOUT_MS,
)
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.metadata.controller_channel import ControllerChannel
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.server.BrokerLifecycleManager")

SOON_S: Final = 0.01
"""The pause between heartbeats while the controller's next answer is waited for."""
SHUTDOWN_HEARTBEAT_S: Final = 0.05
REGISTER_AGAIN_S: Final = 0.2
CONTROLLED_SHUTDOWN_S: Final = 30.0
"""How long a stop waits at most until the controller has moved the leaders away."""
_UNKNOWN_EPOCH: Final = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED})
NO_EPOCH: Final = -1


class BrokerLifecycleState(IntEnum):
    """Kafka's states of a broker."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class BrokerLifecycle:
    """Registers this broker and keeps its session."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        channel: ControllerChannel,
        *,
        registration: Callable[[int], BrokerRegistrationRequest],
        applied_offset: Callable[[], int],
        offline_dirs: Callable[[], Sequence[Uuid]],
        persist_epoch: Callable[[int, Callable[[], None]], None],
        halt: Callable[[str], None],
    ) -> None:
        """`registration` makes the request, given the previous epoch (-1: none); `applied_offset` is of the metadata.

        `persist_epoch` gets each new broker epoch; the broker is not unfenced before it has called back. `halt` stops
        the broker.
        """
        self._loop = loop
        self._config = config
        self._channel = channel
        self._registration = registration
        self._applied_offset = applied_offset
        self._offline_dirs = offline_dirs
        self._persist_epoch = persist_epoch
        self._halt = halt
        self.state = BrokerLifecycleState.NOT_RUNNING
        self.broker_epoch = NO_EPOCH
        """The epoch of the registration, -1 before it."""
        self.on_caught_up: list[Callable[[], None]] = []
        """Called once, when the metadata has this broker's registration, and what the controller changed with it."""
        self.on_running: list[Callable[[], None]] = []
        """Called once, when the broker is unfenced for the first time."""
        self._ready_to_unfence = False
        self._is_fenced = True
        self._was_running = False
        self._is_in_flight = False
        self._must_repeat = False
        self._timer: Timer | None = None
        self._give_up_at = 0.0
        self._reported: object = None
        self._stopped: Callable[[bool], None] | None = None
        self._stop_timer: Timer | None = None

    def start(self) -> None:
        """Register, and send heartbeats from then on."""
        self.state = BrokerLifecycleState.STARTING
        self._give_up_at = self._loop.now() + self._config[INITIAL_BROKER_REGISTRATION_TIMEOUT_MS] / 1000
        self._communicate()

    def ready_to_unfence(self) -> None:
        """The logs are open: clients may be served as soon as the controller agrees."""
        self._ready_to_unfence = True
        self.heartbeat_now()

    def heartbeat_now(self) -> None:
        """Send a heartbeat at once, for example because a log directory has failed."""
        if self.state in {BrokerLifecycleState.NOT_RUNNING, BrokerLifecycleState.SHUTTING_DOWN}:
            return
        if self._is_in_flight:
            self._must_repeat = True
        else:
            self._communicate()

    def begin_controlled_shutdown(self, stopped: Callable[[bool], None]) -> None:
        """Have the controller move this broker's leaders away; then call `stopped` once, with whether that was done."""
        if self.broker_epoch == NO_EPOCH or self.state not in {
            BrokerLifecycleState.RECOVERY,
            BrokerLifecycleState.RUNNING,
        }:
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            stopped(False)
            return
        self.state = BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN
        self._stopped = stopped
        self._give_up_at = self._loop.now() + CONTROLLED_SHUTDOWN_S
        logger.info(
            "Waiting until the controller has moved the leaders of this broker %d; without its answer for at most %g s",
            self._config.node_id,
            self._config[BROKER_SESSION_TIMEOUT_MS] / 1000,
        )
        self._extend_shutdown_wait()
        self.heartbeat_now()

    def _extend_shutdown_wait(self) -> None:
        """Wait for the controller as long as a session lasts without an answer, and not too long in all."""
        if self._stop_timer is not None:
            self._stop_timer.cancel()
        session_s = self._config[BROKER_SESSION_TIMEOUT_MS] / 1000
        until = min(self._loop.now() + session_s, self._give_up_at)
        self._stop_timer = self._loop.timers.at(until, self._no_answer_to_shutdown)

    def close(self) -> None:
        """Send nothing more."""
        self.state = BrokerLifecycleState.SHUTTING_DOWN
        for timer in (self._timer, self._stop_timer):
            if timer is not None:
                timer.cancel()

    # -- sending

    def _communicate(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.state == BrokerLifecycleState.SHUTTING_DOWN or self._is_in_flight:
            return
        self._is_in_flight = True
        timeout_s = self._config[BROKER_SESSION_TIMEOUT_MS] / 2000
        if self.broker_epoch == NO_EPOCH:
            self._channel.send(self._registration(NO_EPOCH), self._registered, timeout_s=timeout_s)
            return
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._applied_offset(),
            want_fence=not self._ready_to_unfence,
            want_shut_down=self.state == BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=list(self._offline_dirs()),
        )
        self._channel.send(request, self._heartbeat_answered, timeout_s=timeout_s)

    def _later(self, pause_s: float) -> None:
        self._is_in_flight = False
        if self._must_repeat:
            self._must_repeat = False
            pause_s = 0.0
        if self.state != BrokerLifecycleState.SHUTTING_DOWN:
            self._timer = self._loop.timers.at(self._loop.now() + pause_s, self._communicate)

    @property
    def _interval_s(self) -> float:
        interval_ms: int = self._config[BROKER_HEARTBEAT_INTERVAL_MS]
        return interval_ms / 1000

    # -- registration

    def _registered(self, response: BrokerRegistrationResponse | KafkaError) -> None:
        code = response.code if isinstance(response, KafkaError) else ErrorCode(response.error_code)
        if code == ErrorCode.NONE and isinstance(response, BrokerRegistrationResponse):
            self._take_epoch(response.broker_epoch)
            return
        self._refused(code, response.message if isinstance(response, KafkaError) else None)

    def _take_epoch(self, epoch: int) -> None:
        logger.info("Registered this broker %d with the broker epoch %d", self._config.node_id, epoch)
        self._reported = None
        self.broker_epoch = epoch
        if self.state in {BrokerLifecycleState.RECOVERY, BrokerLifecycleState.RUNNING}:
            self.state = BrokerLifecycleState.STARTING
        self._is_fenced = True
        self._persist_epoch(epoch, lambda: self._later(0.0))

    def _refused(self, code: ErrorCode, text: str | None) -> None:
        """The controller did not register this broker: log the reason, once, and try again for the configured time."""
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._halt("the controllers belong to another cluster than this broker's data")
            return
        why = _REFUSALS.get(code, text or code.name)
        if not self._was_running and self._loop.now() >= self._give_up_at:
            self._halt(f"it could not be registered with a controller: {why}")
            return
        if self._reported != code:
            self._reported = code
            logger.warning("This broker %d is not registered yet: %s", self._config.node_id, why)
        self._later(REGISTER_AGAIN_S)

    # -- heartbeats

    def _heartbeat_answered(self, response: BrokerHeartbeatResponse | KafkaError) -> None:
        code = response.code if isinstance(response, KafkaError) else ErrorCode(response.error_code)
        if code in _UNKNOWN_EPOCH:
            logger.warning("The controller does not know the broker epoch %d: registering again", self.broker_epoch)
            self.broker_epoch = NO_EPOCH
            if self._stopped is not None:
                self._may_stop(is_drained=False)
                return
            self._later(0.0)
            return
        if code or isinstance(response, KafkaError):
            if self._reported != code:
                self._reported = code
                logger.warning("A heartbeat to the controller has failed: %s", code.name)
            self._later(REGISTER_AGAIN_S)
            return
        self._reported = None
        self._follow(response)

    def _follow(self, response: BrokerHeartbeatResponse) -> None:
        state = self.state
        if state == BrokerLifecycleState.STARTING and response.is_caught_up:
            state = self.state = BrokerLifecycleState.RECOVERY
            logger.info("This broker has caught up with the metadata")
            followers, self.on_caught_up = self.on_caught_up, []
            for follower in followers:
                call_guarded("A callback after the registration of a broker", follower)
            if response.is_fenced:
                self._later(0.0 if self._ready_to_unfence else self._interval_s)
                return
        if state == BrokerLifecycleState.STARTING:
            self._later(SOON_S)
        elif state == BrokerLifecycleState.RECOVERY:
            if response.is_fenced:
                self._later(SOON_S if self._ready_to_unfence else self._interval_s)
            else:
                self._run()
        elif state == BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._may_stop(is_drained=True)
            else:
                self._extend_shutdown_wait()
                self._later(SHUTDOWN_HEARTBEAT_S)
        else:
            if response.is_fenced != self._is_fenced:
                self._is_fenced = response.is_fenced
                logger.warning("The controller has %s this broker", "fenced" if response.is_fenced else "unfenced")
            self._later(SOON_S if response.is_fenced else self._interval_s)

    def _run(self) -> None:
        self.state = BrokerLifecycleState.RUNNING
        self._is_fenced = False
        logger.info("This broker %d is unfenced", self._config.node_id)
        if not self._was_running:
            self._was_running = True
            for follower in self.on_running:
                call_guarded("A callback after the start of a broker", follower)
        self._later(self._interval_s)

    # -- stopping

    def _no_answer_to_shutdown(self) -> None:
        why = "has not moved all" if self._loop.now() >= self._give_up_at else "has not answered about the"
        logger.warning("The controller %s leaders of this broker; stopping anyway", why)
        self._may_stop(is_drained=False)

    def _may_stop(self, *, is_drained: bool) -> None:
        stopped, self._stopped = self._stopped, None
        self.close()
        if stopped is not None:
            call_guarded("A controlled shutdown", stopped, is_drained)


_REFUSALS: Final = {
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "another process with this node.id has a session; after a crash it ends "
    "by itself within broker.session.timeout.ms, and the registration is repeated until then",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster has finalized a feature in a level that this broker does not support",
    ErrorCode.REQUEST_TIMED_OUT: "no controller has answered",
    ErrorCode.NETWORK_EXCEPTION: "no controller has answered",
}
