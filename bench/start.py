"""How long a broker's process takes until it serves: its first Metadata answer, then every partition's offsets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping

from bench import frames
from bench.servers import Server

START_TIMEOUT_S = 180.0
POLL_S = 0.002
LATEST = -1


def first_metadata(server: Server, started: float) -> float:
    """Seconds since `started` (monotonic) until the broker answers Metadata with itself in it."""
    return _until(server, started, frames.metadata(), lambda answer: int.from_bytes(answer[4:8], "big") > 0)


def all_serve(server: Server, started: float, topics: Mapping[str, Iterable[int]]) -> float:
    """Seconds since `started` until one ListOffsets finds every partition of `topics` without an error."""

    def is_whole(answer: bytes) -> bool:
        return all(error == 0 for error, _ in frames.listed_offsets(answer).values())

    return _until(server, started, frames.list_offsets(topics, LATEST), is_whole)


def end_offsets(server: Server, topics: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
    """The log end offset by topic and partition."""
    answer = _ask(server, frames.list_offsets(topics, LATEST))
    return {partition: offset for partition, (_, offset) in frames.listed_offsets(answer).items()}


def _until(server: Server, started: float, request: bytes, is_enough: Callable[[bytes], bool]) -> float:
    while time.monotonic() - started < START_TIMEOUT_S:
        try:
            if is_enough(_ask(server, request)):
                return time.monotonic() - started
        except OSError:
            if server.process is not None and server.process.poll() is not None:
                break
        time.sleep(POLL_S)
    raise RuntimeError(f"{server.name} did not serve:\n{server.log()[-2000:]}")


def _ask(server: Server, request: bytes) -> bytes:
    """The answer without its size, on a connection of its own."""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as answers:
            size = int.from_bytes(answers.read(4), "big")
            answer = answers.read(size)
    if not size or len(answer) < size:
        raise ConnectionResetError("closed before the answer was there")
    return answer
