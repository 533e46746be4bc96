"""Unpacking the archives in tests/data."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a tar archive of ours into `target`, which is returned. Python has the filter from 3.11.4 on."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
        else:
            tar.extractall(target)
    return target
