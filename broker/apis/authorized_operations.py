"""The authorized operations in responses (KIP-430), without ACLs: everything that a resource allows.

Bit n stands for AclOperation n.
"""

from __future__ import annotations

from typing import Final

TOPIC_OPERATIONS: Final = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS: Final = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
GROUP_OPERATIONS: Final = sum(1 << n for n in (3, 6, 8, 10, 11))

NOT_REQUESTED: Final = -(2**31)
"""The value if the client did not request them."""


def cluster_operations(is_requested: bool) -> int:
    """The operations on the cluster, if they are requested."""
    return CLUSTER_OPERATIONS if is_requested else NOT_REQUESTED


def topic_operations(is_requested: bool) -> int:
    """The operations on a topic, if they are requested."""
    return TOPIC_OPERATIONS if is_requested else NOT_REQUESTED
