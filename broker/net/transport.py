"""The reactor: one trio task that owns every socket of the broker.

The task waits (through trio) until the poller's own descriptor is readable, then serves everything that is ready
without awaiting: reads into one shared buffer, hands the bytes to the connection, and sends once what the turn has
produced. That is about twice the requests per second of a task per connection, and a request costs no checkpoint.
While there is traffic the task lingers: it waits for the next event itself for up to a millisecond, since going
through trio for each costs more than most requests do. Nothing that a connection does can reach another: whatever its
code raises closes it alone.

How answers leave is in `broker.net.channel`. Interest in writing exists only while a socket's buffer is full.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

import trio

from barnabas.broker.net.channel import TURN_BYTES, Channel
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.broker.net.poller import READ, WRITE, make_poller
from barnabas.wire.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker

logger = logging.getLogger("kafka.network.SocketServer")

SCRATCH_BYTES = 256 * 1024
ACCEPT_BATCH = 64
NO_DESCRIPTORS_PAUSE_S = 0.1
COMPLAINT_S = 10.0
"""A lack of descriptors is not told more often."""
RESERVED_FROM = 0.9
"""The part of the file descriptors that connections may have; numbers are given out from below."""
LINGER_S = 0.001
"""How long the reactor waits for the next event by itself before it leaves the thread to the other tasks."""
TURNS_A_CHECKPOINT = 32

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Limits:
    """What the transport allows, by Kafka's config keys."""

    __slots__ = ("idle_s", "max_connections", "max_connections_per_ip", "max_frame_bytes", "max_queued_bytes")

    def __init__(
        self,
        *,
        max_frame_bytes: int = 104857600,
        max_connections: int = 2147483647,
        max_connections_per_ip: int = 2147483647,
        max_queued_bytes: int = -1,
        idle_s: float = 600.0,
    ) -> None:
        self.max_frame_bytes = max_frame_bytes  # socket.request.max.bytes
        self.max_queued_bytes = max_queued_bytes  # queued.max.request.bytes
        self.max_connections = max_connections  # max.connections
        self.max_connections_per_ip = max_connections_per_ip  # max.connections.per.ip
        self.idle_s = idle_s  # connections.max.idle.ms


class Listener:
    """A listening socket and the name of its listener."""

    __slots__ = ("name", "socket")

    def __init__(self, name: str, listening: socket.socket) -> None:
        self.name = name
        self.socket = listening


class Reactor:
    """Serves listeners and their connections until cancelled."""

    def __init__(self, broker: Broker, limits: Limits) -> None:
        self._broker = broker
        self.limits = limits
        self._poller = make_poller()
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._buffers = FrameBuffers(limits.max_queued_bytes)
        self._listeners: list[Listener] = []
        self._channels: dict[Connection, Channel] = {}
        self._per_ip: dict[str, int] = {}
        self._to_flush: list[Channel] = []
        self._in_turn = False
        self._accepting = True
        self._is_pausing = False
        self._next_complaint = -inf
        self._closed: trio.Event | None = None

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._channels)

    def listen(self, listener: Listener) -> None:
        """Serve a socket that is already bound and listening."""
        listener.socket.setblocking(False)
        self._listeners.append(listener)
        self._poller.register(listener.socket.fileno(), READ, listener)

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
                if turns % TURNS_A_CHECKPOINT == 0 or self._broker.timers.is_due(self._broker.now()):
                    await trio.lowlevel.checkpoint()
        finally:
            self._close_all()

    def _turn(self, events: list[tuple[object, int]]) -> None:
        now = self._broker.now()
        self._in_turn = True
        for target, ready in events:
            if type(target) is Channel:
                if ready & READ:
                    self._read(target, now)
                if ready & WRITE:
                    self._queue(target)
            elif isinstance(target, Listener):
                self._accept(target)
            else:
                target()  # type: ignore[operator]  # given to `watch`
        self._broker.after_turn()
        self._flush_queued(now)
        self._in_turn = False

    def after_turn(self) -> None:
        """Send what came about outside of a turn."""
        if self._in_turn:
            return
        self._in_turn = True
        self._flush_queued(self._broker.now())
        self._in_turn = False

    # -- accepting

    def _accept(self, listener: Listener) -> None:
        if self._is_pausing:
            return
        for _ in range(ACCEPT_BATCH):
            try:
                self._check_descriptors()
                accepted, peer = listener.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    self._pause_accepting(error)
                    return
                continue  # the peer has gone before we took it
            try:
                self._admit(listener, accepted, peer)
            except OSError:
                accepted.close()

    def _check_descriptors(self) -> None:
        """OSError when the next descriptor is one of those kept for the logs: a connection not taken yet can wait."""
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if descriptors == resource.RLIM_INFINITY:
            return
        following = os.dup(self._poller.fileno())
        os.close(following)
        if following >= RESERVED_FROM * descriptors:
            raise OSError(errno.EMFILE, "the last file descriptors are kept for the logs")

    def _admit(self, listener: Listener, accepted: socket.socket, peer: tuple[str, int]) -> None:
        host = _plain(peer[0])
        limits = self.limits
        in_use = self._per_ip.get(host, 0)
        if len(self._channels) >= limits.max_connections or in_use >= limits.max_connections_per_ip:
            name = "max.connections" if len(self._channels) >= limits.max_connections else "max.connections.per.ip"
            logger.warning("Refused a connection from %s: %s is reached", host, name)
            accepted.close()
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        local = accepted.getsockname()
        connection = Connection(
            self._broker,
            listener=listener.name,
            peer=(host, peer[1]),
            local=(_plain(local[0]), local[1]),
            max_frame_bytes=limits.max_frame_bytes,
            buffers=self._buffers,
            on_output=self._on_output,
            now=self._broker.now(),
        )
        channel = Channel(accepted, connection)
        self._poller.register(channel.fd, READ, channel)
        self._channels[connection] = channel
        self._per_ip[host] = in_use + 1

    def _pause_accepting(self, error: OSError) -> None:
        """Out of file descriptors: leave the queue to the kernel for a moment, so as not to spin."""
        now = self._broker.now()
        if now >= self._next_complaint:
            self._next_complaint = now + COMPLAINT_S
            logger.warning(
                "Cannot accept connections for now, with %d open: %s. Raise the limit of open files (ulimit -n)",
                *(len(self._channels), error.strerror),
            )
        self._is_pausing = True
        for listener in self._listeners:
            self._poller.unregister(listener.socket.fileno())
        self._broker.timers.at(now + NO_DESCRIPTORS_PAUSE_S, self._resume_accepting)

    def _resume_accepting(self) -> None:
        self._is_pausing = False
        if self._accepting:
            for listener in self._listeners:
                self._poller.register(listener.socket.fileno(), READ, listener)

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
            channel.flush(self._broker.now())  # answers to the good requests before it
        except Exception:
            logger.debug("What was left for %s:%d is lost", connection.peer_host, connection.peer_port, exc_info=True)
        self._close(channel)

    # -- sending

    def _on_output(self, connection: Connection) -> None:
        """A connection has something to send, or may go on reading."""
        channel = self._channels.get(connection)
        if channel is None:
            return
        self._queue(channel)
        if not self._in_turn:
            self._broker.call_after_turn(self.after_turn)

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
            self._broker.after_turn()

    def _settle(self, channel: Channel) -> None:
        """Ask the selector for what the channel needs now; close it if it is finished."""
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
        """Close the connections on which nothing was asked for `connections.max.idle.ms`; returns how many.

        A frame begun and not finished is no activity: a peer that trickles bytes is closed like one that sends none.
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
        """Close the listeners; the connections go on."""
        self._accepting = False
        for listener in self._listeners:
            try:
                self._poller.unregister(listener.socket.fileno())
            except KeyError:
                pass
            listener.socket.close()
        self._listeners.clear()

    def stop_reading(self) -> None:
        """Take no further request; what has been answered still leaves."""
        for channel in list(self._channels.values()):
            channel.connection.is_closing = True
            self._queue(channel)
        self.after_turn()

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
    """An IPv4 address as such, also where it came over a socket of both families."""
    return host.removeprefix("::ffff:") if "." in host else host


def bind(host: str, port: int, backlog: int) -> socket.socket:
    """A listening socket; OSError says why there is none. An empty host is every interface."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not host:
        family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    else:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family = found[0][0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and not host:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((host, port))
        listening.listen(max(backlog, 511))  # the burst of clients at a restart is larger than Kafka's 50
    except BaseException:
        listening.close()
        raise
    return listening
