"""The command line. `main` is the console script.

`serve` is parsed with argparse, because importing click and rich takes more than 40 ms and the broker should start in
a fifth of a second. Kafka's tools (`barnabas.cli.kafka_tools`) have a parser of their own. All other commands are
click's (`barnabas.cli.app`) and imported when called.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (the list is in `barnabas.cli.app`).

    As the program itself (without `arguments`), SIGTERM stops every command as Ctrl-C does.
    """
    is_program = arguments is None
    code = INTERRUPTED
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments), is_program=is_program)
    except KeyboardInterrupt:
        pass  # while modules are imported; commands say themselves what they did
    finally:
        if is_program:
            _prepare_end(code)
    return code


def _prepare_end(code: int) -> None:
    """End the process here if it was interrupted; otherwise let a signal end it with `code` while Python finalizes.

    A KeyboardInterrupt in generated code (`exec` of a string, as dataclasses do) makes CPython 3.11 end with SIGINT
    whatever the exit code is, and one during finalization prints a traceback.
    """

    def end(number: int = 0, frame: FrameType | None = None) -> NoReturn:  # noqa: ARG001 (a signal handler's arguments)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    if code == INTERRUPTED:
        end()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _run(arguments: list[str], *, is_program: bool) -> int:
    from barnabas.platforms import is_refused

    if is_refused():
        return 2
    if arguments and arguments[0] == "help":  # 'help topic list' is 'topic list --help'
        arguments = [*arguments[1:], "--help"]
    if arguments and arguments[0] == "serve":
        from barnabas.cli.serve.run import serve

        return serve(arguments[1:])
    if is_program:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout`, systemd and docker stop commands with it
    if arguments and arguments[0].startswith("kafka-"):
        from barnabas.cli.kafka_tools.registry import run as run_tool

        return run_tool(arguments[0].removesuffix(".sh"), arguments[1:])
    from barnabas.cli.app import run

    return run(arguments)
