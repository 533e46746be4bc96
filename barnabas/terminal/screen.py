"""The terminal's abilities: its width, and whether escape sequences may be written.

`NO_COLOR` (not empty) and `TERM=dumb` turn escape sequences off; a file or a pipe never gets any.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def is_terminal(stream: TextIO | None) -> bool:
    """True if this stream writes to a terminal or reads from one."""
    return stream is not None and not stream.closed and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """True if a line on this stream can be erased and written again, as progress does."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """True if bold and coloured text may be written to this stream."""
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def width(stream: TextIO | None = None) -> int:
    """Columns of the terminal of this stream, or of stdout (`COLUMNS` first), at least 20; 80 without a terminal."""
    setting = os.environ.get("COLUMNS", "")
    if setting.isascii() and setting.isdigit() and int(setting) > 0:
        return max(20, int(setting))
    try:
        columns = os.get_terminal_size((stream or sys.stdout).fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(20, columns) if columns else 80


def bold(text: str) -> str:
    """`text` in bold on stdout, where that is allowed."""
    return f"{BOLD}{text}{PLAIN}" if has_colour(sys.stdout) else text
