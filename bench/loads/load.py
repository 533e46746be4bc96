"""`load.c` in Python, for machines without a C compiler: same arguments and output, but slower.

python -m bench.loads.load produce|walk|fetch HOST PORT FRAMES CONNECTIONS DEPTH|END_OFFSET WARMUP_S SECONDS [MAX_MB]
"""

from __future__ import annotations

import itertools
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator

READ_BYTES = 1 << 20


class Connection:
    """One connection; sends the next of `frames` whenever fewer than `depth` requests are in flight."""

    def __init__(self, address: tuple[str, int], frames: Iterator[bytearray], depth: int) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.frames = frames
        self.frame = bytearray()
        self.depth = depth
        self.times: deque[int] = deque()
        self.sent = 0
        self.received = bytearray()

    def send(self) -> bool:
        """Send until `depth` requests are in flight; True if the socket's send buffer is full before that."""
        while self.sent or len(self.times) < self.depth:
            if not self.sent:
                self.frame = next(self.frames)
                self.times.append(time.monotonic_ns())
            try:
                self.sent += self.socket.send(memoryview(self.frame)[self.sent :])
            except BlockingIOError:
                return True
            if self.sent == len(self.frame):
                self.sent = 0
        return False

    def receive(self) -> list[bytes]:
        """The responses received, without their size."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise SystemExit("load: the broker closed the connection")
        self.received += data
        responses = []
        while len(self.received) >= 4:
            size = int.from_bytes(self.received[:4], "big")
            if len(self.received) < 4 + size:
                break
            responses.append(bytes(self.received[4 : 4 + size]))
            del self.received[: 4 + size]
        return responses


class Load:
    """All connections of a run, and its counts."""

    def __init__(self, arguments: list[str]) -> None:
        mode, host, port, path, count, number = arguments[:6]
        self.fetching = mode == "fetch"
        self.end_offset = int(number)
        frames = list(_frames(path))
        depth = 1 if self.fetching else int(number)
        walk = itertools.cycle(frames)
        self.connections = [
            Connection(
                (host, int(port)),
                walk if mode == "walk" else itertools.repeat(bytearray(frames[n % len(frames)])),
                depth,
            )
            for n in range(int(count))
        ]
        self.stopped = False
        self.poller = select.epoll()
        self.by_fd = {connection.socket.fileno(): connection for connection in self.connections}
        for fd in self.by_fd:
            self.poller.register(fd, select.EPOLLIN)
        self.bytes = 0
        self.samples: list[int] = []

    def _send(self, connection: Connection) -> None:
        full = connection.send()
        self.poller.modify(connection.socket.fileno(), select.EPOLLIN | (select.EPOLLOUT if full else 0))

    def _produced(self, connection: Connection, response: bytes) -> None:
        name = struct.unpack_from(">h", response, 8)[0]
        _check(struct.unpack_from(">h", response, 10 + name + 8)[0])
        self.bytes += len(connection.frame) - 4

    def _fetched(self, connection: Connection, response: bytes) -> None:
        position = 14 + struct.unpack_from(">h", response, 12)[0] + 4
        _check(struct.unpack_from(">h", response, position + 4)[0])
        aborted = struct.unpack_from(">i", response, position + 22)[0]
        position += 26 + 16 * max(aborted, 0)
        end = position + 4 + max(struct.unpack_from(">i", response, position)[0], 0)
        position += 4
        offset = struct.unpack_from(">q", connection.frame, len(connection.frame) - 12)[0]
        while end - position >= 61 and end - position >= 12 + struct.unpack_from(">i", response, position + 8)[0]:
            offset = (
                struct.unpack_from(">q", response, position)[0]
                + struct.unpack_from(">i", response, position + 23)[0]
                + 1
            )
            position += 12 + struct.unpack_from(">i", response, position + 8)[0]
        struct.pack_into(">q", connection.frame, len(connection.frame) - 12, 0 if offset >= self.end_offset else offset)
        self.bytes += len(response)

    def run(self, seconds: float, max_bytes: int) -> None:
        """Load the broker for `seconds`, or until `max_bytes` are counted (0: no limit).

        At least one response is counted, however slow the machine is: a rate of nothing is no figure.
        """
        end = time.monotonic() + seconds
        while (
            not self.stopped
            and (time.monotonic() < end or not self.samples)
            and (not max_bytes or self.bytes < max_bytes)
        ):
            for fd, events in self.poller.poll(0.1):
                connection = self.by_fd[fd]
                if events & select.EPOLLIN:
                    for response in connection.receive():
                        self.samples.append(time.monotonic_ns() - connection.times.popleft())
                        (self._fetched if self.fetching else self._produced)(connection, response)
                self._send(connection)

    def stop(self, *_: object) -> None:
        """End the load early (SIGTERM)."""
        self.stopped = True


def _frames(path: str) -> list[bytearray]:
    with open(path, "rb") as file:
        data = memoryview(file.read())
    frames = []
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        frames.append(bytearray(data[:size]))
        data = data[size:]
    return frames


def _check(code: int) -> None:
    if code:
        raise SystemExit(f"load: the broker answered error code {code}")


def main() -> None:
    """Run like `load.c`."""
    load = Load(sys.argv[1:])
    signal.signal(signal.SIGTERM, load.stop)
    warmup, seconds = float(sys.argv[7]), float(sys.argv[8])
    max_bytes = int(sys.argv[9]) << 20 if len(sys.argv) > 9 else 0
    for connection in load.connections:
        load._send(connection)
    if warmup > 0:
        load.run(warmup, max_bytes // 4)
    load.samples.clear()
    load.bytes = 0
    print("start", flush=True)
    started = time.monotonic()
    load.run(seconds, max_bytes)
    took = time.monotonic() - started
    print("end", flush=True)
    samples = sorted(load.samples) or [0]
    p50, p99, max_us = (samples[int(q * (len(samples) - 1))] / 1000 for q in (0.5, 0.99, 1))
    counted = f"requests={len(load.samples)} bytes={load.bytes} seconds={took:.6f}"
    print(f"result {counted} p50_us={p50:.1f} p99_us={p99:.1f} max_us={max_us:.1f}")


if __name__ == "__main__":
    main()
