"""The reactor: one trio task that owns every socket of the broker.

The task waits (through trio) until the poller's descriptor is readable, then serves everything that is ready without
awaiting: it reads into one shared buffer, passes the bytes to the connection, and at the end of the turn sends the
output. That gives about twice the requests per second of a task per connection, and no checkpoint per request. While
there is traffic the task polls for the next event itself for up to a millisecond, since a round through trio's
scheduler costs more than most requests. Connections are isolated: an exception closes only the connection it came from.

A turn is bounded by time, and one request more. The remaining events are served in the next turns, before the next
poll. A connection that has used up its share (`SHARE_S`, less when many connections are ready) is served in a rotation
with others like it: after the responses to all other connections were sent, at least one connection in each turn; and
the reactor polls again between the rotation and other tasks. So pipelined and expensive requests delay their senders,
and a request of any other client waits for one piece of such work.

Why not a task of trio per connection: on 2 cores, with 50 connections that send requests with one small message, tasks
serve 23,000 to 39,000 requests a second, the reactor 52,000 to 61,000.

How responses are sent is in `broker.net.channel`. A socket is watched for writing only while its buffer is full.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import trio

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.broker.net.acceptor import Acceptor, Listener
from barnabas.broker.net.admission import Admission, plain_host
from barnabas.broker.net.channel import TURN_BYTES, Channel
from barnabas.broker.net.connection import EXPENSIVE_S, SHARE_S, Connection, Meter
from barnabas.broker.net.page_cache import ReadAhead
from barnabas.broker.net.polling.poller import CLOSED, READ, WRITE
from barnabas.broker.net.polling.poller_choice import FastestPoller
from barnabas.wire.errors import ProtocolError

if TYPE_CHECKING:
    from socket import SocketType

    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.limits import Limits
    from barnabas.broker.net.polling.poller import Poller

logger = logging.getLogger("kafka.network.SocketServer")

SCRATCH_BYTES = 256 * 1024
LINGER_S = 0.001
"""How long the reactor polls for the next event before it lets trio run other tasks, seconds."""
TURN_S = 0.001
"""How long requests are handled in a turn, seconds; then their output is sent."""
FEW = 4
"""When more connections are ready, they divide this number of `SHARE_S` equally: with 50, connections that send more
than a request or two at a time go on in the rotation, and the others do not wait for them."""
BUSY_VISITS = 4
"""How often a connection is served in the rotation after it exceeded its share while many were ready."""
ROTATION_S = 0.0005
"""How long the rotation is served after that in a turn, seconds, and one request more."""
SEND_S = 0.0005
"""How long responses are sent at a time, seconds."""
CHECKPOINT_S = 0.01
"""How long the reactor serves before it lets trio run other tasks, seconds."""
FAILED_TURN_PAUSE_S = 0.01
"""How long the reactor waits after a turn that failed, so that a permanent failure does not fill the log."""
_SEND_CHECK_BYTES = 64 * 1024
_SEND_BASE_BYTES = 4096


class Reactor:
    """Serves listeners and their connections until cancelled."""

    def __init__(
        self,
        loop: Loop,
        limits: Limits,
        dispatch: Callable[[Connection, memoryview], None],
        disk: DiskExecutor | None = None,
        cpu_time: Callable[[], float] = time.thread_time,
    ) -> None:
        """`dispatch` serves one request frame of a connection; `disk` reads pieces to be sent that are not in memory.

        `cpu_time` returns the CPU time of the thread, seconds.
        """
        self._cpu_time = cpu_time
        self._loop = loop
        self._limits = limits
        self._dispatch = dispatch
        self._poller: Poller = FastestPoller()
        self.poller = self._poller  # `Outgoing` adds its own sockets
        self._refusals = LimitedLog(loop, logger, logging.WARNING, "connections that were refused or closed")
        self.admission = Admission(
            loop,
            limits,
            self._refusals,
            lambda late: self._close(self._channels[late]),
            lambda: self.acceptor.release_held(),  # noqa: PLW0108 - it is made below
        )
        self.acceptor = Acceptor(loop, self._poller, self._admit, lambda: len(self._channels), self.admission.hold)
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._read_ahead = ReadAhead(disk)
        self._channels: dict[Connection, Channel] = {}
        self._to_flush: deque[Channel] = deque()
        self._rotation: deque[Channel] = deque()
        self._unserved: list[tuple[object, int]] = []  # events that the last turn had no time for
        self._ready = 0  # how many connections the poller has reported
        self._is_crowded = False  # whether more than `FEW` connections are ready
        self._served_at = 0.0  # when the requests of the last turn were handled
        self._share_s = SHARE_S  # how long the requests of a connection are served in this turn
        self._in_turn = False
        self._sleep: trio.CancelScope | None = None
        self._closed: trio.Event | None = None
        self.on_close: list[Callable[[], None]] = []  # called when `run` ends
        self.turn_began = loop.now()  # of the current turn, or the last one
        self.on_sent: Callable[[], None] | None = None  # called when responses were sent
        self.meter: Meter | None = None  # set before the first turn
        self.linger_s = LINGER_S  # how long it polls after an event; 0 where the thread serves other brokers too

    @property
    def connections(self) -> Collection[Connection]:
        """The open connections."""
        return self._channels

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits of connections; open ones stay open. All other limits are fixed at the start."""
        self._limits = limits
        self.admission.set_limits(limits)

    def listen(self, listener: Listener) -> None:
        """Serve a socket that is already bound and listening."""
        self.acceptor.listen(listener)

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call `callback` in a turn whenever `fd` is readable."""
        self._poller.register(fd, READ, callback)

    async def run(self) -> None:
        """Serve until cancelled."""
        clock = self._loop.now
        heap = self._loop.timers.heap  # looked at for every request
        next_checkpoint = clock() + CHECKPOINT_S
        linger_s = 0.0
        rotates = True
        meter = self.meter
        try:
            while True:
                try:
                    was_busy = self.turn(linger_s, rotates=rotates)
                except Exception:
                    logger.exception("A turn of the event loop failed")
                    await trio.sleep(FAILED_TURN_PAUSE_S)
                    continue
                if not was_busy:
                    linger_s = 0.0
                    await self._wait_for_work()
                    continue
                linger_s = self.linger_s
                now = self._served_at
                if meter is not None:
                    meter.turns.append(clock() - self.turn_began)
                is_due = now >= next_checkpoint or (heap and heap[0][0] <= now)
                if is_due and rotates and self._rotation:
                    rotates = False  # a turn more: requests wait for the rotation or for other tasks, not for both
                    continue
                rotates = True
                if is_due:
                    await trio.lowlevel.checkpoint()
                    next_checkpoint = clock() + CHECKPOINT_S
                    if meter is not None:
                        meter.count_turns()
        finally:
            self._close_all()

    async def _wait_for_work(self) -> None:
        with trio.CancelScope() as self._sleep:
            await trio.lowlevel.wait_readable(self._poller.fileno())
        self._sleep = None

    def turn(self, linger_s: float = 0.0, *, rotates: bool = True) -> bool:
        """Serve ready sockets, for `TURN_S` and one request more, then the rotation; False if nothing was ready.

        `linger_s` is how long to wait for a ready socket, seconds. `rotates`: whether the rotation is served.
        """
        events = self._unserved
        if events:
            self._unserved = []
        else:
            has_work = self._rotation or self._to_flush
            events = self._poller.poll(0 if has_work else linger_s)
            self._ready = len(events)
            if not events and not has_work:
                return False
        self._in_turn = True
        loop = self._loop
        try:
            if len(events) != 1 or self._rotation or not self._serve_one(events[0]):
                loop.is_gathering = len(events) > 1
                self._serve(events)
                loop.is_gathering = False
                loop.write_gathered()
            if loop.callbacks:
                loop.end_turn()
            self._send_queued()
            if self._rotation and rotates:
                self._serve_rotation()
                self._loop.end_turn()
                self._send_queued()
            if self.on_sent is not None:
                self.on_sent()
        finally:
            self._in_turn = loop.is_gathering = False
        return True

    def _serve_one(self, event: tuple[object, int]) -> bool:
        """Serve the only event: a connection that nothing is known against has data. False for any other event."""
        target, ready = event
        if ready != READ or not isinstance(target, Channel):
            return False
        if target.is_heavy or target.is_suspect or target.busy_visits:
            return False
        clock = self._loop.now
        now = self.turn_began = clock()
        self._is_crowded = False
        self._share_s = SHARE_S
        self._read(target, now)
        self._served_at = served_at = clock()
        if served_at - now >= EXPENSIVE_S:
            target.is_suspect = True
        return True

    def _serve(self, events: list[tuple[object, int]]) -> None:
        """Serve events for `TURN_S`; the others are kept for the next turn."""
        clock = self._loop.now
        now = self.turn_began = clock()
        end = now + TURN_S
        crowd = self._ready + len(self._rotation)
        self._is_crowded = crowd > FEW
        self._share_s = SHARE_S * FEW / crowd if self._is_crowded else SHARE_S
        for index, (target, ready) in enumerate(events):
            if type(target) is Channel and ready == READ and not target.is_suspect and not target.is_heavy:
                if target.busy_visits:
                    self._rotate(target)
                    continue
                self._read(target, now)  # nearly always
            elif isinstance(target, Channel):
                if not self._serve_channel(target, ready, now):
                    continue
            else:
                self._serve_other(target)
            before, now = now, clock()
            if now - before >= EXPENSIVE_S and isinstance(target, Channel):
                target.is_suspect = True
            if now >= end:
                self._unserved = events[index + 1 :]
                break
        self._served_at = now

    def _serve_channel(self, channel: Channel, ready: int, now: float) -> bool:
        """Serve an event of a channel; False if it is to be served in the rotation."""
        if ready & CLOSED:
            self._close(channel)
            return True
        if ready & WRITE:
            channel.connection.last_active = now  # the peer has read what was sent before
            self._queue(channel)
        if ready & READ:
            if channel.is_heavy or channel.busy_visits:
                self._rotate(channel)
                return False
            (self._weigh if channel.is_suspect else self._read)(channel, now)
        return True

    def _serve_other(self, target: object) -> None:
        """Serve a listener, or a descriptor that was given to `watch`."""
        self._loop.write_gathered()
        try:
            if isinstance(target, Listener):
                self.acceptor.accept(target)
            else:
                target()  # type: ignore[operator]  # given to `watch`
        except Exception:
            logger.exception("The event loop's callback %r failed", target)

    def _rotate(self, channel: Channel) -> None:
        """Serve a channel after the others: it has used up its share of a turn."""
        if not channel.is_waiting:
            channel.is_waiting = True
            self._rotation.append(channel)

    def _serve_rotation(self) -> None:
        """Serve the channels in the rotation for `ROTATION_S`, each once at most and one at least.

        Connections that have not authenticated are always in it: handshakes of TLS and large tokens cost more than most
        requests, and any host can send them.
        """
        clock = self._loop.now
        now = clock()
        end = now + ROTATION_S
        self._share_s = SHARE_S
        for _ in range(len(self._rotation)):
            channel = self._rotation.popleft()
            channel.is_waiting = False
            before = now
            if channel.is_unauthenticated:
                self._go_on(channel, now)
                now = clock()
                if now - before < EXPENSIVE_S and channel.connection.on_authenticated is None:
                    channel.is_heavy = False  # a share of CPU time is not less than a share of time
            else:
                self._weigh(channel, now)
                now = clock()
            if channel.busy_visits:
                channel.busy_visits -= 1
            if now >= end:
                break

    def _weigh(self, channel: Channel, now: float) -> None:
        """Serve a channel, and decide by the CPU time that it takes whether it waits for others the next time.

        On a busy machine time passes also for other processes; reading the CPU time costs a system call.
        """
        before = self._cpu_time()
        self._go_on(channel, now)
        channel.is_suspect = channel.is_heavy = self._cpu_time() - before >= EXPENSIVE_S

    def send_outside_turn(self) -> None:
        """Send the output produced outside of a turn."""
        if self._in_turn:
            return
        self._in_turn = True
        try:
            self._send_queued()
        finally:
            self._in_turn = False
        if (self._to_flush or self._rotation) and self._sleep is not None:
            self._sleep.cancel()  # `run` waits, and this is work that the poller does not report

    # -- accepting

    def _admit(self, listener: Listener, accepted: SocketType, peer: tuple[str, int]) -> None:
        host = plain_host(peer[0])
        if not self.admission.admits(listener, accepted, host):
            return
        accepted.setblocking(False)
        local_host, local_port = listener.local_address(accepted)
        connection = Connection(
            listener.dispatch or self._dispatch,
            listener=listener.name,
            peer=(host, peer[1]),
            local=(plain_host(local_host), local_port),
            max_frame_bytes=self._limits.max_frame_bytes,
            buffers=self.admission.buffers_of(listener),
            on_output=self._on_output,
            clock=self._loop.now,
            security_protocol=listener.protocol,
            on_refused=self._on_refused,
            count_errors=None if self.meter is None else self.meter.count_errors,
        )
        if listener.prepare is not None:
            listener.prepare(connection)
        if listener.tls is None:
            channel = Channel(accepted, connection, self._read_ahead)
        else:
            channel = listener.tls.channel(accepted, connection, self._read_ahead, self._rotate)
        self._poller.register(channel.fd, READ, channel)
        self._channels[connection] = channel
        self.admission.opened(listener, connection, self._channels)

    # -- reading

    def _go_on(self, channel: Channel, now: float) -> None:
        """Handle the requests that a connection has kept, or read from it."""
        connection = channel.connection
        if connection.is_closed:
            return
        if not connection.can_resume:
            self._read(channel, now)
            return
        try:
            connection.resume(now)
        except Exception as error:
            self._failed(channel, error)
        else:
            self._queue(channel)

    def _read(self, channel: Channel, now: float) -> None:
        """Read and handle requests. The end of the stream is read behind the last one, as in Kafka: a peer that has
        closed only its side gets its responses; a request that waits is cancelled unless it has taken effect."""
        connection = channel.connection
        if connection.is_closing or (connection.partial is not None and not connection.wants_data):
            return  # an event from before it stopped reading
        begun = connection.partial
        try:
            if begun is not None:
                self._read_partial(channel, now, TURN_BYTES)
            elif count := channel.socket.recv_into(self._scratch):
                connection.receive(self._scratch[:count], now, self._share_s)
                if connection.partial is not None and connection.space() is not None:
                    self._read_partial(channel, now, TURN_BYTES - count)
            else:
                connection.is_closing = True
        except BlockingIOError:
            pass
        except Exception as error:
            self._failed(channel, error)
            return
        if not channel.is_queued:
            channel.is_queued = True
            self._to_flush.append(channel)

    def _read_partial(self, channel: Channel, now: float, budget: int) -> None:
        """Read the rest of a frame that has begun, and what follows it, for about `budget` bytes."""
        connection = channel.connection
        while budget > 0:
            space = None if connection.partial is None else connection.space()
            count = channel.socket.recv_into(self._scratch if space is None else space)
            if not count:
                connection.is_closing = True
                return
            if space is None:
                connection.receive(self._scratch[:count], now, self._share_s)
                if connection.partial is None or connection.space() is None:
                    return
            else:
                space.release()
                connection.filled(count, now, self._share_s)
            budget -= count

    def _failed(self, channel: Channel, error: Exception) -> None:
        """Close a connection because of an error of its peer, of its socket, or a bug."""
        connection = channel.connection
        if isinstance(error, ProtocolError):
            self._refuse(channel, error)
            return
        if not isinstance(error, OSError):
            logger.error("The connection from %s:%d failed", connection.peer_host, connection.peer_port, exc_info=error)
        self._close(channel)

    def _on_refused(self, connection: Connection, error: ProtocolError) -> None:
        """Close a connection because its peer has sent something invalid."""
        if (channel := self._channels.get(connection)) is not None:
            self._refuse(channel, error)

    def _refuse(self, channel: Channel, error: ProtocolError) -> None:
        self._loop.write_gathered()
        connection = channel.connection
        peer = (connection.peer_host, connection.peer_port)
        self._refusals.line(connection.peer_host, "Closing the connection from %s:%d: %s", *peer, error)
        connection.is_closing = True
        try:
            channel.flush()  # responses to the valid requests before it
        except Exception:
            logger.debug("Responses to %s:%d are lost", connection.peer_host, connection.peer_port, exc_info=True)
        self._close(channel)

    # -- sending

    def _on_output(self, connection: Connection) -> None:
        """A connection has something to send, or can go on reading."""
        if (channel := self._channels.get(connection)) is None:
            return
        self._queue(channel)
        if not self._in_turn:
            self._loop.call_after_turn(self.send_outside_turn)

    def _queue(self, channel: Channel) -> None:
        if not channel.is_queued:
            channel.is_queued = True
            self._to_flush.append(channel)

    def _send_queued(self) -> None:
        """Send responses for `SEND_S` at most; the others are sent later, in the next turn at the latest."""
        loop = self._loop
        if loop.gathered:
            loop.write_gathered()
        queue = self._to_flush
        if not queue:
            return
        if len(queue) == 1 and not loop.callbacks:
            self._send(queue.popleft())
            if not (queue or loop.callbacks):
                return
        end = loop.now() + SEND_S if len(queue) > 1 else 0.0
        weight = 0
        while queue:
            weight += self._send(queue.popleft())
            if not queue and loop.callbacks:
                loop.end_turn()
            if weight >= _SEND_CHECK_BYTES:
                weight = 0
                if not end:
                    end = loop.now() + SEND_S
                elif loop.now() >= end:
                    break

    def _send(self, channel: Channel) -> int:
        """Send what a channel's socket takes; how long that takes, as a number of bytes."""
        channel.is_queued = False
        connection = channel.connection
        if connection.is_closed:
            return 0
        try:
            weight = _SEND_BASE_BYTES + channel.flush()
            if connection.partial is not None or connection.is_closing or connection.out or channel.interest != READ:
                self._settle(channel)
            return weight
        except Exception as error:
            self._failed(channel, error)
            return 0

    def _settle(self, channel: Channel) -> None:
        """Have the poller watch the channel for the events it needs now; close the channel if it is finished."""
        connection = channel.connection
        if (connection.partial is None and not connection.is_closing) or connection.wants_data:
            interest = READ
        else:
            if connection.is_finished:
                self._close(channel)
                return
            interest = 0
            if connection.can_resume:
                self._rotate(channel)
                if self._is_crowded:
                    channel.busy_visits = BUSY_VISITS
        if connection.out and not channel.is_reading:
            interest |= WRITE
        if interest != channel.interest:
            self._poller.modify(channel.fd, interest, channel)
            channel.interest = interest

    # -- closing

    def _close(self, channel: Channel) -> None:
        connection = channel.connection
        if self._channels.pop(connection, None) is None:
            return
        self._poller.unregister(channel.fd)
        self.admission.closed(connection)
        channel.socket.close()
        if self._closed is not None and not self._channels:
            self._closed.set()
        try:
            connection.close()
        except Exception:
            logger.exception("Closing the connection from %s failed", connection.peer_host)

    def close_idle(self, now: float) -> int:
        """Close connections without a request for `connections.max.idle.ms`; returns their number.

        An incomplete frame is no activity: a peer that sends single bytes is closed like one that sends nothing.
        """
        oldest = now - self._limits.idle_s
        idle = [
            connection
            for connection in self._channels
            if connection.last_active <= oldest and not connection.has_delayed_response
        ]
        for connection in idle:
            self._close(self._channels[connection])
        return len(idle)

    def stop_reading(self) -> None:
        """Handle no further requests; responses that are ready are still sent."""
        for channel in list(self._channels.values()):
            channel.connection.is_closing = True
            self._queue(channel)
        self.send_outside_turn()

    async def wait_closed(self) -> None:
        """Wait until no connection is left."""
        if self._channels:
            self._closed = trio.Event()
            await self._closed.wait()

    def _close_all(self) -> None:
        for close in self.on_close:
            call_guarded("Closing what the event loop polls", close)
        self.acceptor.close()
        self.admission.close()
        for channel in list(self._channels.values()):
            self._close(channel)
        self._poller.close()
