"""The duration of a broker's start: until its first Metadata answer, then until all partitions answer ListOffsets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages import offsets as o
from barnabas.wire.types import chunk_bytes
from bench import frames
from bench.servers import Server

START_TIMEOUT_S = 180.0
POLL_S = 0.002
LATEST = -1
FETCH_VERSION = 8
NOT_YET = {14, 15, 16}
"""Error codes of a coordinator that is loading, unavailable or elsewhere."""


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
    """Send a request on a new connection; returns the answer without its size."""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as answers:
            size = int.from_bytes(answers.read(4), "big")
            answer = answers.read(size)
    if not size or len(answer) < size:
        raise ConnectionResetError("closed before the answer")
    return answer


def find_coordinators(server: Server, groups: Iterable[str]) -> None:
    """Request the groups' coordinator until there is one: Kafka creates its topic at the first request."""
    started = time.monotonic()
    for group in groups:
        _until(server, started, frames.find_coordinator(group), lambda answer: answer[4:6] == b"\0\0")


def committed_offsets(server: Server, started: float, topic: str, groups: Sequence[str]) -> float:
    """Seconds since `started` until one OffsetFetch finds the committed offset of each group.

    It is sent once some groups of every coordinator are loaded, because repeated requests for all are a load.
    """
    _groups_offsets(server, started, topic, groups[: len(groups) // 20 + 1])
    return _groups_offsets(server, started, topic, groups)


def _groups_offsets(server: Server, started: float, topic: str, groups: Sequence[str]) -> float:
    wanted = [o.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    asked = o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id=one, topics=wanted) for one in groups])
    request = b"".join(map(chunk_bytes, encode_request(asked, FETCH_VERSION, 1, "bench")))

    def is_whole(answer: bytes) -> bool:
        _, place = parse_response_header(answer, asked.api_key, FETCH_VERSION)
        found = o.OffsetFetchResponse.decode(answer[place:], FETCH_VERSION).groups
        codes = {group.error_code for group in found}
        if codes - {0} - NOT_YET:
            raise RuntimeError(f"committed offsets were answered with error codes {codes}")
        return codes == {0} and all(group.topics[0].partitions[0].committed_offset >= 0 for group in found)

    return _until(server, started, request, is_whole)
