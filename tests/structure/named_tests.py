"""Tests that pages name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def exists(file: str, name: str) -> bool:
    """Whether a test, or a table of cases, is in a file."""
    path = ROOT / file
    source = path.read_text(encoding="utf-8") if path.is_file() else ""
    return re.search(rf"^\s*(?:(?:async )?def|class) {name}\b|^{name} = ", source, re.MULTILINE) is not None
