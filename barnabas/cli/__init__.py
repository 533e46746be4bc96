"""The command line. `main` is the console script.

`serve` is parsed with argparse, because importing click and rich takes more than 40 ms and the broker should start in
a fifth of a second. Kafka's tools (`barnabas.cli.kafka_tools`) have a parser of their own. All other commands are
click's (`barnabas.cli.app`) and imported when called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (the list is in `barnabas.cli.app`)."""
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return 130  # while modules are imported; commands say themselves what they did


def _run(arguments: list[str]) -> int:
    from barnabas.platforms import is_refused

    if is_refused():
        return 2
    if arguments and arguments[0] == "serve":
        from barnabas.cli.serve.run import serve

        return serve(arguments[1:])
    if arguments and arguments[0].startswith("kafka-"):
        from barnabas.cli.kafka_tools.registry import run as run_tool

        return run_tool(arguments[0].removesuffix(".sh"), arguments[1:])
    from barnabas.cli.app import run

    return run(arguments)
