"""Runs `python -m barnabas` of a checkout with replaced clocks and pollers, and counts its work when it is told to."""

from __future__ import annotations

import logging  # noqa: F401 - modules of Python with clocks or pollers of their own are imported before both are replaced
import queue  # noqa: F401
import runpy
import selectors  # noqa: F401
import subprocess  # noqa: F401
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ACCELERATORS = ("barnabas.wire.batches._valid_records",)
"""Modules in C that an installation may lack: the counts are those without them, the same on every machine."""


def main() -> None:
    """The command."""
    control_fd, checkout, *arguments = sys.argv[1:]
    sys.path[0] = str(HERE.parent)
    from injected.clock import Clock
    from injected.control import Control
    from injected.epoll import replace_epoll
    from injected.page_cache import replace_preadv
    from injected.scheduling import fix_scheduling
    from injected.tracer import Tracer

    clock = Clock()
    tracer = Tracer(str(HERE), clock.called)
    clock.system_call = tracer.system_call
    clock.install()
    replace_preadv(tracer.system_call)
    replace_epoll(Control(int(control_fd), clock, tracer), tracer)
    threading.settrace(tracer.trace_thread)
    threading.setprofile(tracer.profile_thread)
    sys.path[0] = checkout  # as `python -m` in that folder has it
    fix_scheduling()
    for name in ACCELERATORS:
        sys.modules[name] = None  # type: ignore[assignment]
    sys.argv = ["barnabas", *arguments]
    runpy.run_module("barnabas", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
