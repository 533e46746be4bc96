"""Chooses the smallest inputs that reach all lines which a corpus reaches.

An input is kept when it reaches a line, or a step from one line to another, that no smaller input reaches. Only lines
of Barnabas count. Of codecs, which are made at run time, only line numbers count, since they are many and similar;
Kafka's vectors are replayed for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGES = tuple(f"/{name}/" for name in ("barnabas", "wire", "coord", "storage", "broker"))
MADE = "<wire codec>"
ROOT = str(Path(__file__).resolve().parent.parent.parent)


def minimised(inputs: Iterable[bytes], check: Callable[[bytes], None]) -> list[bytes]:
    """The inputs to be kept. Raises what `check` raises."""
    seen: set[Any] = set()
    chosen = []
    for data in sorted(set(inputs), key=lambda candidate: (len(candidate), candidate)):
        reached = _reached(data, check)
        if not reached <= seen:
            seen |= reached
            chosen.append(data)
    return chosen


def _reached(data: bytes, check: Callable[[bytes], None]) -> set[Any]:
    reached: set[Any] = set()
    last: dict[int, int] = {}

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        file = frame.f_code.co_filename
        if event == "call" and not (file == MADE or (file.startswith(ROOT) and _is_ours(file[len(ROOT) :]))):
            return None
        line = frame.f_lineno
        reached.add((file, 0 if file == MADE else last.get(id(frame), 0), line))
        last[id(frame)] = line
        if event == "return":
            last.pop(id(frame), None)
        return trace

    sys.settrace(trace)
    try:
        check(data)
    finally:
        sys.settrace(None)
    return reached


def _is_ours(path: str) -> bool:
    return path.startswith(PACKAGES) and ".venv" not in path
