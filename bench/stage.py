"""The two brokers of a group, of which only one runs at a time; the other is paused with SIGSTOP.

They are started at the first use; each is warmed up while the other is not started or paused.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType

from bench.cases.case import KINDS, Group, Scale
from bench.target import Target
from tests.support.processes.server import Server

AFTER_PAUSE_S = 0.2


class Stage:
    """A context manager; stops the brokers at its end."""

    def __init__(self, group: Group, scale: Scale, folder: Path, serve: Callable[[str, Path], Server] | None = None):
        self._group = group
        self._scale = scale
        self._folder = folder
        self._serve = serve or partial(group.server, will_pause=True)
        self._targets: dict[str, Target] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def activate(self, kind: str) -> Target:
        """Resume this broker and pause the other one."""
        if not self._targets:
            for each_kind in KINDS:
                self._start(each_kind)
        self.pause_all()
        target = self._targets[kind]
        target.server.resume()
        time.sleep(AFTER_PAUSE_S)
        return target

    def pause_all(self) -> None:
        """Pause both brokers."""
        for target in self._targets.values():
            target.server.pause()

    def _start(self, kind: str) -> None:
        self.pause_all()
        server = self._stack.enter_context(self._serve(kind, self._folder))
        self._targets[kind] = Target(server)
        if self._group.warm_up is not None:
            print(f"warming up {kind}: {self._group.title}", file=sys.stderr)
            self._group.warm_up(self._targets[kind], self._scale)
