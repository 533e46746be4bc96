"""Prints sentences: results on stdout, progress and errors on stderr.

On a terminal they are wrapped at words; elsewhere a sentence is one line.
"""

from __future__ import annotations

import sys
from typing import TextIO

from barnabas.terminal import screen
from barnabas.terminal.layout import wrap


def say(text: str) -> None:
    """Write a sentence to stdout."""
    _write(sys.stdout, text)


def note(text: str) -> None:
    """Write a sentence to stderr."""
    _write(sys.stderr, text)


def _write(stream: TextIO, text: str) -> None:
    lines = text.split("\n")
    if screen.is_terminal(stream):
        lines = [part for line in lines for part in wrap(line, screen.width(stream))]
    stream.write("".join(line + "\n" for line in lines))
    stream.flush()
