"""A cache for the replay of a log: where the offsets of groups and topics seen before are kept (rule G7).

The key of an offset's record is the same for all partitions of a group and a topic but for its last four bytes. So one
key in hundreds is decoded, and each further offset is two look-ups. Cached places are always checked: the group and
its offsets in the topic may have been removed by a later record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coord.groups.committed_offset import is_plain
from barnabas.coord.short_key_cache import LONGEST_KEPT

if TYPE_CHECKING:
    from collections.abc import Container

PREFIXES_KEPT: Final = 4096
"""How many pairs of group and topic are remembered at a time: about a megabyte."""
PARTITIONS_KEPT: Final = 16384
"""How many partition indexes are kept for all groups together: offsets of the same partition share one number."""

_indexes: dict[bytes, int] = {}


class KnownOffsets:
    """The groups' offsets by the start of their records' keys."""

    def __init__(self, groups: Container[str]) -> None:
        """`groups` are the groups that exist now."""
        self._groups = groups
        self._by_prefix: dict[bytes, tuple[str, dict[int, bytes]]] = {}

    def remember(self, key: bytes, group_id: str, offsets: dict[int, bytes]) -> None:
        """The record with this key, which is valid, was put into `offsets`, which the store drops when it is empty."""
        if len(key) <= LONGEST_KEPT:
            if len(self._by_prefix) >= PREFIXES_KEPT:
                self._by_prefix.clear()
            self._by_prefix[key[:-4]] = (group_id, offsets)

    def put(self, key: bytes, value: bytes) -> bool:
        """Apply the record of an offset if its group and topic are known; False: nothing was done."""
        known = self._by_prefix.get(key[:-4])
        if known is None:
            return False
        group_id, offsets = known
        if not offsets or group_id not in self._groups or not is_plain(value):
            return False
        last = key[-4:]
        index = _indexes.get(last)
        if index is None:
            index = int.from_bytes(last, "big", signed=True)
            if len(_indexes) < PARTITIONS_KEPT:
                _indexes[last] = index
        offsets[index] = value
        return True
