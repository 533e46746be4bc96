"""The command line. `main` is the console script.

`serve` takes a road of its own: reading its dozen options needs neither click nor rich, which together cost
more than 40 ms of a start that aims at a tenth of a second. Everything else goes through click
(`barnabas.cli.app`), whose subcommands are imported one by one, when called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (0 ok, 1 failed, 2 usage, 3 not found, 4 timeout, 130 interrupted)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] == "serve":
        from barnabas.cli.serve import serve

        return serve(given[1:])
    from barnabas.cli.app import run

    return run(given)
