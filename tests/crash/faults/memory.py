"""Has the n-th request, response or decompression of a broker fail with MemoryError, wherever memory is needed at once.

Counted are the parsing of a request, the encoding of a response, every step of a decompression for a validation or a
lookup, and the records of a batch that a coordinator or the cleaner reads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.broker.apis.registry import ROUTES, Route, Routes
from barnabas.storage import batch_content
from barnabas.storage.read import timestamps
from barnabas.wire.batches import record_reader

MEMORY = "MEMORY"


class _Codec:
    """A codec whose calls are counted."""

    def __init__(self, codec: Any, allocate: Callable[[], None]) -> None:
        self._codec = codec
        self._allocate = allocate

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._codec, name)
        if name not in ("parse", "parse_within", "parse_in_steps", "build"):
            return attribute

        def call(*args: Any) -> Any:
            self._allocate()
            return attribute(*args)

        return call


class MemoryFaults:
    """Counts allocations, and fails the one with the number `fails_at`."""

    def __init__(self, fails_at: int = 0) -> None:
        self.count = 0
        self._fails_at = fails_at
        self._is_armed = False

    def start(self) -> None:
        """Count from here on."""
        self._is_armed = True

    def stop(self) -> None:
        """No allocation fails any more."""
        self._is_armed = False

    @property
    def has_failed(self) -> bool:
        """Whether the allocation has come that fails."""
        return 0 < self._fails_at <= self.count

    def allocate(self) -> None:
        """Count one allocation. MemoryError."""
        if self._is_armed:
            self.count += 1
            if self.count == self._fails_at:
                raise MemoryError

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Count the allocations of all brokers of this process."""
        known = {table: dict(table.known) for table in ROUTES.values()}
        find, steps, whole = Routes.find, batch_content.decompressed_steps, record_reader.decompress

        def counted_route(table: Routes, api_key: int, api_version: int) -> Route:
            route = find(table, api_key, api_version)
            if not isinstance(route.request_codec, _Codec):
                route = table.known[api_key << 16 | api_version] = copy.copy(route)
                route.request_codec = _Codec(route.request_codec, self.allocate)  # type: ignore[assignment]
                route.response_codec = _Codec(route.response_codec, self.allocate)  # type: ignore[assignment]
            return route

        def counted_steps(*args: Any) -> Iterator[bytes]:
            pieces = steps(*args)
            while True:
                self.allocate()
                try:
                    piece = next(pieces)
                except StopIteration:
                    return
                yield piece

        def counted_whole(*args: Any) -> bytes:
            self.allocate()
            return whole(*args)

        Routes.find = counted_route  # type: ignore[method-assign]
        for table in known:
            table.known.clear()  # dispatchers hold it
        batch_content.decompressed_steps = timestamps.decompressed_steps = counted_steps  # type: ignore[attr-defined]
        record_reader.decompress = counted_whole  # type: ignore[attr-defined]
        try:
            yield
        finally:
            Routes.find = find  # type: ignore[method-assign]
            for table, routes in known.items():
                table.known.clear()
                table.known.update(routes)
            batch_content.decompressed_steps = timestamps.decompressed_steps = steps  # type: ignore[attr-defined]
            record_reader.decompress = whole  # type: ignore[attr-defined]
