"""What is kept of a failed test: its cluster, as a directory that `barnabas serve --data-dir` takes."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from barnabas.testing.errors import BrokerError, RefusedError

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster

LONGEST = 150
"""Characters of a directory's name."""


def keep(kafka: Cluster, folder: Path, test: str) -> str:
    """Save the cluster as `folder`/NAME of the test, in place of what an earlier run has left there; what to say."""
    path = folder / re.sub(r"[^\w.-]+", "-", test).strip("-")[-LONGEST:]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rmtree(path, ignore_errors=True)
        snapshot = kafka.snapshot()
        snapshot.save(path)
        snapshot.remove()
    except (BrokerError, RefusedError, OSError) as error:
        return f"It could not be kept: {error}"
    return f"It is kept: barnabas serve --data-dir {path}"
