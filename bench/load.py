"""`load.c` in Python, for machines without a C compiler: same arguments, same output, fewer requests per second.

python -m bench.load produce|walk|fetch HOST PORT FRAMES CONNECTIONS DEPTH|END_OFFSET WARMUP_S SECONDS [MAX_MB]
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
    """A connection that sends frames: always the same, or the frames of a file in turn."""

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

    def push(self) -> bool:
        """Send until the depth is reached (False) or the socket is full (True)."""
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

    def pull(self) -> list[bytes]:
        """The received answers, without their size."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise SystemExit("load: the broker closed the connection")
        self.received += data
        answers = []
        while len(self.received) >= 4:
            size = int.from_bytes(self.received[:4], "big")
            if len(self.received) < 4 + size:
                break
            answers.append(bytes(self.received[4 : 4 + size]))
            del self.received[: 4 + size]
        return answers


class Load:
    """All connections of a run, and the counts."""

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
        self.by_fd = {one.socket.fileno(): one for one in self.connections}
        for fd in self.by_fd:
            self.poller.register(fd, select.EPOLLIN)
        self.bytes = 0
        self.samples: list[int] = []

    def _push(self, one: Connection) -> None:
        full = one.push()
        self.poller.modify(one.socket.fileno(), select.EPOLLIN | (select.EPOLLOUT if full else 0))

    def _produced(self, one: Connection, answer: bytes) -> None:
        name = struct.unpack_from(">h", answer, 8)[0]
        _check(struct.unpack_from(">h", answer, 10 + name + 8)[0])
        self.bytes += len(one.frame) - 4

    def _fetched(self, one: Connection, answer: bytes) -> None:
        place = 14 + struct.unpack_from(">h", answer, 12)[0] + 4
        _check(struct.unpack_from(">h", answer, place + 4)[0])
        aborted = struct.unpack_from(">i", answer, place + 22)[0]
        place += 26 + 16 * max(aborted, 0)
        end = place + 4 + max(struct.unpack_from(">i", answer, place)[0], 0)
        place += 4
        offset = struct.unpack_from(">q", one.frame, len(one.frame) - 12)[0]
        while end - place >= 61 and end - place >= 12 + struct.unpack_from(">i", answer, place + 8)[0]:
            offset = struct.unpack_from(">q", answer, place)[0] + struct.unpack_from(">i", answer, place + 23)[0] + 1
            place += 12 + struct.unpack_from(">i", answer, place + 8)[0]
        struct.pack_into(">q", one.frame, len(one.frame) - 12, 0 if offset >= self.end_offset else offset)
        self.bytes += len(answer)

    def run(self, seconds: float, max_bytes: int) -> None:
        """Load the broker for some time, or until enough bytes were transferred."""
        end = time.monotonic() + seconds
        while not self.stopped and time.monotonic() < end and (not max_bytes or self.bytes < max_bytes):
            for fd, events in self.poller.poll(0.1):
                one = self.by_fd[fd]
                if events & select.EPOLLIN:
                    for answer in one.pull():
                        self.samples.append(time.monotonic_ns() - one.times.popleft())
                        (self._fetched if self.fetching else self._produced)(one, answer)
                self._push(one)

    def stop(self, *_: object) -> None:
        """SIGTERM: end the load early."""
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
    """Run as `load.c` does."""
    load = Load(sys.argv[1:])
    signal.signal(signal.SIGTERM, load.stop)
    warmup, seconds = float(sys.argv[7]), float(sys.argv[8])
    max_bytes = int(sys.argv[9]) << 20 if len(sys.argv) > 9 else 0
    for one in load.connections:
        load._push(one)
    load.run(warmup, max_bytes // 4)
    load.samples.clear()
    load.bytes = 0
    print("start", flush=True)
    started = time.monotonic()
    load.run(seconds, max_bytes)
    took = time.monotonic() - started
    print("end", flush=True)
    samples = sorted(load.samples) or [0]
    p50, p99, most = (samples[int(q * (len(samples) - 1))] / 1000 for q in (0.5, 0.99, 1))
    counted = f"requests={len(load.samples)} bytes={load.bytes} seconds={took:.6f}"
    print(f"result {counted} p50_us={p50:.1f} p99_us={p99:.1f} max_us={most:.1f}")


if __name__ == "__main__":
    main()
