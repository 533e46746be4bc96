"""The reactor: one trio task that owns every socket of the broker.

The task waits (through trio) until the poller's descriptor is readable, then serves everything that is ready without
awaiting: it reads into one shared buffer, passes the bytes to the connection, and at the end of the turn sends what
was produced. That gives about twice the requests per second of a task per connection, and no checkpoint per request.
While there is traffic the task polls for the next event itself for up to a millisecond, since a round through trio's
scheduler costs more than most requests. Connections are isolated: an exception closes only the connection it came from.

How responses are sent is in `broker.net.channel`. A socket is watched for writing only while its buffer is full.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from barnabas.broker.net.acceptor import Acceptor, Listener
from barnabas.broker.net.channel import TURN_BYTES, Channel
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.broker.net.poller import READ, WRITE, make_poller
from barnabas.wire.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.net.limits import Limits

logger = logging.getLogger("kafka.network.SocketServer")

SCRATCH_BYTES = 256 * 1024
LINGER_S = 0.001
"""How long the reactor polls for the next event before it lets trio run other tasks, seconds."""
TURNS_PER_CHECKPOINT = 32


class Reactor:
    """Serves listeners and their connections until cancelled."""

    def __init__(self, loop: Loop, limits: Limits, dispatch: Callable[[Connection, memoryview], None]) -> None:
        """`dispatch` serves one request frame of a connection."""
        self._loop = loop
        self.limits = limits
        self._dispatch = dispatch
        self._poller = make_poller()
        self.acceptor = Acceptor(loop, self._poller, self._admit, lambda: len(self._channels))
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._buffers = FrameBuffers(limits.max_queued_bytes)
        self._channels: dict[Connection, Channel] = {}
        self._per_ip: dict[str, int] = {}
        self._to_flush: list[Channel] = []
        self._in_turn = False
        self._closed: trio.Event | None = None

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._channels)

    def listen(self, listener: Listener) -> None:
        """Serve a socket that is already bound and listening."""
        self.acceptor.listen(listener)

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call `callback` in a turn whenever `fd` is readable."""
        self._poller.register(fd, READ, callback)

    async def run(self) -> None:
        """Serve until cancelled."""
        poll = self._poller.poll
        fd = self._poller.fileno()
        turns = 0
        try:
            while True:
                events = poll(LINGER_S if turns else 0)
                if not events:
                    turns = 0
                    await trio.lowlevel.wait_readable(fd)
                    continue
                self._turn(events)
                turns += 1
                if turns % TURNS_PER_CHECKPOINT == 0 or self._loop.timers.is_due(self._loop.now()):
                    await trio.lowlevel.checkpoint()
        finally:
            self._close_all()

    def _turn(self, events: list[tuple[object, int]]) -> None:
        now = self._loop.now()
        self._in_turn = True
        for target, ready in events:
            if type(target) is Channel:
                if ready & READ:
                    self._read(target, now)
                if ready & WRITE:
                    self._queue(target)
            elif isinstance(target, Listener):
                self.acceptor.accept(target)
            else:
                target()  # type: ignore[operator]  # given to `watch`
        self._loop.end_turn()
        self._flush_queued(now)
        self._in_turn = False

    def send_outside_turn(self) -> None:
        """Send what was produced outside of a turn."""
        if self._in_turn:
            return
        self._in_turn = True
        self._flush_queued(self._loop.now())
        self._in_turn = False

    # -- accepting

    def _admit(self, listener: Listener, accepted: socket.socket, peer: tuple[str, int]) -> None:
        host = _plain(peer[0])
        limits = self.limits
        in_use = self._per_ip.get(host, 0)
        if len(self._channels) >= limits.max_connections or in_use >= limits.max_connections_per_ip:
            name = "max.connections" if len(self._channels) >= limits.max_connections else "max.connections.per.ip"
            logger.warning("Refused a connection from %s: the limit %s is reached", host, name)
            accepted.close()
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        local = accepted.getsockname()
        connection = Connection(
            self._dispatch,
            listener=listener.name,
            peer=(host, peer[1]),
            local=(_plain(local[0]), local[1]),
            max_frame_bytes=limits.max_frame_bytes,
            buffers=self._buffers,
            on_output=self._on_output,
            now=self._loop.now(),
        )
        channel = Channel(accepted, connection)
        self._poller.register(channel.fd, READ, channel)
        self._channels[connection] = channel
        self._per_ip[host] = in_use + 1

    # -- reading

    def _read(self, channel: Channel, now: float) -> None:
        connection = channel.connection
        budget = TURN_BYTES
        try:
            while budget > 0:
                space = connection.space()
                if space is None:
                    count = channel.socket.recv_into(self._scratch)
                    if not count:
                        self._close(channel)
                        return
                    connection.receive(self._scratch[:count], now)
                    budget = 0 if connection.space() is None else budget - count
                else:
                    count = channel.socket.recv_into(space)
                    space.release()
                    if not count:
                        self._close(channel)
                        return
                    connection.filled(count, now)
                    budget -= count
        except BlockingIOError:
            pass
        except ProtocolError as error:
            self._refuse(channel, error)
            return
        except OSError:
            self._close(channel)
            return
        except Exception:
            logger.exception("The connection from %s:%d failed", connection.peer_host, connection.peer_port)
            self._close(channel)
            return
        self._queue(channel)

    def _refuse(self, channel: Channel, error: ProtocolError) -> None:
        connection = channel.connection
        logger.warning("Closing the connection from %s:%d: %s", connection.peer_host, connection.peer_port, error)
        connection.is_closing = True
        try:
            channel.flush(self._loop.now())  # responses to the valid requests before it
        except Exception:
            logger.debug("Responses to %s:%d are lost", connection.peer_host, connection.peer_port, exc_info=True)
        self._close(channel)

    # -- sending

    def _on_output(self, connection: Connection) -> None:
        """A connection has something to send, or can go on reading."""
        channel = self._channels.get(connection)
        if channel is None:
            return
        self._queue(channel)
        if not self._in_turn:
            self._loop.call_after_turn(self.send_outside_turn)

    def _queue(self, channel: Channel) -> None:
        if not channel.is_queued:
            channel.is_queued = True
            self._to_flush.append(channel)

    def _flush_queued(self, now: float) -> None:
        while self._to_flush:
            queued, self._to_flush = self._to_flush, []
            for channel in queued:
                channel.is_queued = False
                if channel.connection.is_closed:
                    continue
                try:
                    channel.flush(now)
                    self._settle(channel)
                except ProtocolError as error:
                    self._refuse(channel, error)
                except OSError:
                    self._close(channel)
                except Exception:
                    logger.exception("The connection from %s failed", channel.connection.peer_host)
                    self._close(channel)
            self._loop.end_turn()

    def _settle(self, channel: Channel) -> None:
        """Have the poller watch the channel for what it needs now; close the channel if it is finished."""
        connection = channel.connection
        if connection.is_closing and not connection.out and not connection.must_still_respond:
            self._close(channel)
            return
        interest = (READ if connection.wants_data else 0) | (WRITE if connection.out else 0)
        if interest == channel.interest:
            return
        if not interest:
            self._poller.unregister(channel.fd)
        elif not channel.interest:
            self._poller.register(channel.fd, interest, channel)
        else:
            self._poller.modify(channel.fd, interest, channel)
        channel.interest = interest

    # -- closing

    def _close(self, channel: Channel) -> None:
        connection = channel.connection
        if self._channels.pop(connection, None) is None:
            return
        if channel.interest:
            self._poller.unregister(channel.fd)
        left = self._per_ip[connection.peer_host] - 1
        if left:
            self._per_ip[connection.peer_host] = left
        else:
            del self._per_ip[connection.peer_host]
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
        oldest = now - self.limits.idle_s
        idle = [
            channel
            for connection, channel in self._channels.items()
            if connection.last_active <= oldest and not connection.has_delayed_response
        ]
        for channel in idle:
            self._close(channel)
        return len(idle)

    def stop_accepting(self) -> None:
        """Close the listeners; the connections stay open."""
        self.acceptor.close()

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
        self.stop_accepting()
        for channel in list(self._channels.values()):
            self._close(channel)
        self._poller.close()


def _plain(host: str) -> str:
    """An IPv4 address in its usual form, also when it was accepted by a dual-stack socket."""
    return host.removeprefix("::ffff:") if "." in host else host
