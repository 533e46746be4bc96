"""The systems that Barnabas runs on. Imports nothing, so that it can refuse before an import fails."""

from __future__ import annotations

import sys

NOT_ON_WINDOWS = (
    "barnabas: Windows is not supported: install it in WSL, the Windows Subsystem for Linux, and run it there\n"
)


def is_refused() -> bool:
    """Print one sentence and return True where no command works (Windows); the exit code is 2."""
    if sys.platform == "win32":
        sys.stderr.write(NOT_ON_WINDOWS)
        return True
    return False
