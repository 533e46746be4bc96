"""Takes out of an answer what other sequences on the same brokers have made: each compares only its own names."""

from __future__ import annotations

import re
from typing import Any

NAMES = ("name", "topic", "topic_name", "group_id", "transactional_id", "resource_name")
_OTHERS = re.compile(r"s\d+-|twin|__")


def scoped(value: Any, prefix: str) -> Any:
    """The value without the elements of lists that are named after another sequence or an internal topic."""
    if isinstance(value, dict):
        return {name: scoped(part, prefix) for name, part in value.items()}
    if isinstance(value, list):
        return [scoped(part, prefix) for part in value if not _is_foreign(part, prefix)]
    return value


def _is_foreign(element: Any, prefix: str) -> bool:
    if not isinstance(element, dict):
        return False
    for key in NAMES:
        name = element.get(key)
        if isinstance(name, str) and name:
            return _OTHERS.match(name) is not None and not name.startswith(prefix)
    return False
