"""The releases of Apache Kafka with their APIs: which of them a broker speaks like.

The table is made from the classes of the releases (`compat/kafka/make_releases.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("releases.json")
FIRST_OPTIONAL: Final = 68
ALWAYS_OFFERED: Final = frozenset({74, 75})
"""ListConfigResources and DescribeTopicPartitions. The other APIs from 68 on depend on features and configs."""


@cache
def releases() -> dict[str, Any]:
    """By name, such as 3.9, the oldest first: `apis` (first and last version by key as a text) and `features`."""
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


@cache
def _last_versions() -> dict[str, dict[int, int]]:
    """The APIs that every broker of a release offers, with their last versions."""
    return {
        name: {
            int(key): last
            for key, (_, last) in row["apis"].items()
            if int(key) < FIRST_OPTIONAL or int(key) in ALWAYS_OFFERED
        }
        for name, row in releases().items()
    }


def release_of(last_versions: Mapping[int, int]) -> str | None:
    """The newest release all of whose APIs are offered up to their last versions; None before 2.0.

    `last_versions`: by API key, as the broker answers ApiVersions.
    """
    spoken = [
        name
        for name, apis in _last_versions().items()
        if all(last_versions.get(key, -1) >= last for key, last in apis.items())
    ]
    return spoken[-1] if spoken else None
