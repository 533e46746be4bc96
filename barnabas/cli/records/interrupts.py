"""Ctrl-C or SIGTERM while there is something to finish: the first one asks to stop, the second one ends at once.

While the program only waits for input (`immediate`), the first one raises KeyboardInterrupt where it waits.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Handles SIGINT and SIGTERM within `with`; `on_request` is called by the first one and must not wait."""

    def __init__(self, on_request: Callable[[], None]) -> None:
        self.on_request = on_request
        self.is_requested = False
        self._is_waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (a signal handler's arguments)
        again, self.is_requested = self.is_requested, True
        if again or self._is_waiting:
            raise KeyboardInterrupt
        self.on_request()

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Within it nothing has to be finished: the first signal raises."""
        if self.is_requested:
            raise KeyboardInterrupt
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False
