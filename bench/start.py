"""Measures a broker's start-up: until it answers Metadata, serves every partition, and has loaded every group."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.support.processes.server import Server
from tests.support.requests import frames

M = TypeVar("M", bound=Message)

START_TIMEOUT_S = 180.0
POLL_S = 0.002
LATEST = -1
FETCH_VERSION = 8
RETRIABLE = {14, 15, 16}
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""


def first_metadata(server: Server, started: float) -> float:
    """Seconds since `started` (monotonic) until the broker answers Metadata with at least one broker."""
    return until(server, started, frames.metadata(), lambda response: int.from_bytes(response[4:8], "big") > 0)


def all_serve(server: Server, started: float, topics: Mapping[str, Iterable[int]]) -> float:
    """Seconds since `started` until a ListOffsets response has no error for any partition of `topics`."""

    def is_complete(response: bytes) -> bool:
        return all(error == 0 for error, _ in frames.listed_offsets(response).values())

    return until(server, started, frames.list_offsets(topics, LATEST), is_complete)


def end_offsets(server: Server, topics: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
    """The log end offset by topic and partition."""
    response = request(server, frames.list_offsets(topics, LATEST))
    return {partition: offset for partition, (_, offset) in frames.listed_offsets(response).items()}


def until(server: Server, started: float, message: bytes, is_complete: Callable[[bytes], bool]) -> float:
    """Send a request until its response is complete; seconds since `started`."""
    while time.monotonic() - started < START_TIMEOUT_S:
        try:
            if is_complete(request(server, message)):
                return time.monotonic() - started
        except OSError:
            if server.process is not None and server.process.poll() is not None:
                break
        time.sleep(POLL_S)
    raise RuntimeError(f"{server.name} did not serve in {START_TIMEOUT_S:.0f} s:\n{server.log()[-2000:]}")


def request_bytes(message: Message, version: int) -> bytes:
    """A whole request, with its size."""
    return b"".join(map(chunk_bytes, encode_request(message, version, 1, "bench")))


def decoded(response: bytes, kind: type[M], version: int) -> M:
    """A response without its size, decoded."""
    _, position = parse_response_header(response, kind.api_key, version)
    return kind.decode(response[position:], version)


def request(server: Server, message: bytes) -> bytes:
    """Send a request on a new connection; returns the response without its size."""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.sendall(message)
        with connection.makefile("rb") as stream:
            size = int.from_bytes(stream.read(4), "big")
            response = stream.read(size)
    if not size or len(response) < size:
        raise ConnectionResetError("closed before the response was complete")
    return response


def find_coordinators(server: Server, groups: Iterable[str]) -> None:
    """Send FindCoordinator for each group until it succeeds: Kafka creates __consumer_offsets at the first request."""
    started = time.monotonic()
    for group in groups:
        until(server, started, frames.find_coordinator(group), lambda response: response[4:6] == b"\0\0")


def committed_offsets(server: Server, started: float, topic: str, groups: Sequence[str]) -> float:
    """Seconds since `started` until one OffsetFetch returns the committed offset of each group.

    Requests only a twentieth of the groups until these are loaded, because repeated requests for all would be a load.
    """
    _groups_offsets(server, started, topic, groups[: len(groups) // 20 + 1])
    return _groups_offsets(server, started, topic, groups)


def _groups_offsets(server: Server, started: float, topic: str, groups: Sequence[str]) -> float:
    topics = [o.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    message = o.OffsetFetchRequest(
        groups=[o.OffsetFetchRequestGroup(group_id=group_id, topics=topics) for group_id in groups]
    )

    def is_complete(response: bytes) -> bool:
        fetched = decoded(response, o.OffsetFetchResponse, FETCH_VERSION).groups
        codes = {group.error_code for group in fetched}
        if codes - {0} - RETRIABLE:
            raise RuntimeError(f"OffsetFetch returned error codes {codes}")
        return codes == {0} and all(group.topics[0].partitions[0].committed_offset >= 0 for group in fetched)

    return until(server, started, request_bytes(message, FETCH_VERSION), is_complete)
