"""Where costs can be counted: one version of Python, on Linux."""

from __future__ import annotations

import sys

MINOR = (3, 11)


def why_not() -> str:
    """Why costs cannot be counted here, a sentence; empty if they can."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] != MINOR:
        here = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
        counted = f"{MINOR[0]}.{MINOR[1]}"
        return f"The table counts the bytecodes of CPython {counted}; {here} compiles the same source to others."
    if sys.platform != "linux":
        return f"The counts are those of the event loop on Linux; {sys.platform} has other system calls."
    return ""
