"""Runs several commands after each other in one process, with a line between them: `python many.py JSON`."""

from __future__ import annotations

import json
import sys

from barnabas.cli import main

END = "=== end of"


def run_all(commands: list[list[str]]) -> None:
    """Run each command; a line after each has its number and its exit code."""
    for number, arguments in enumerate(commands):
        code = main(arguments)
        sys.stderr.flush()
        print(f"{END} {number} {code}", flush=True)


if __name__ == "__main__":
    run_all(json.loads(sys.argv[1]))
