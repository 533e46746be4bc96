"""Runs Barnabas' commands in this process, with their standard streams captured."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.cli import main
from tests.support.transcript import Output


def run(words: list[str], stdin: str) -> Output:
    """Run one command."""
    with _streams(stdin.encode()) as (out, errors):
        code = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    return Output(_lines(out), _lines(errors), code)


def _lines(stream: io.BytesIO) -> list[str]:
    return stream.getvalue().decode().splitlines()


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    before = sys.stdin, sys.stdout, sys.stderr
    out, errors = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(errors, encoding="utf-8", write_through=True)
    try:
        yield out, errors
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before
