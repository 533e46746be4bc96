"""An index of all ACLs: the ACLs of one resource are found without looking at the others.

A bucket has the ACLs of one pattern by their principal. Prefixes are found by their lengths: a question looks for the
beginnings of the resource's name that are as long as some prefix, at most 249 for a topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from barnabas.coord.security.acls import WILDCARD, Acl, PatternType, ResourceType

K = TypeVar("K", bound=Hashable)

Bucket = dict[str, dict[Acl, None]]


class AclIndex:
    """The ACLs by resource pattern, and by principal."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[ResourceType, PatternType, str], Bucket] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {}
        self._by_principal: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._by_principal.get((acl.resource_type, acl.principal), ())

    def add(self, acl: Acl) -> None:
        """Add an ACL, unless it is there already."""
        bucket = self._buckets.setdefault((acl.resource_type, acl.pattern_type, acl.resource_name), {})
        if acl in bucket.get(acl.principal, ()):
            return
        if not bucket and acl.pattern_type == PatternType.PREFIXED:
            self._prefix_lengths.setdefault(acl.resource_type, Counter())[len(acl.resource_name)] += 1
        bucket.setdefault(acl.principal, {})[acl] = None
        self._by_principal.setdefault((acl.resource_type, acl.principal), {})[acl] = None
        self._count += 1

    def remove(self, acl: Acl) -> None:
        """Remove an ACL, if it is there."""
        key = (acl.resource_type, acl.pattern_type, acl.resource_name)
        bucket = self._buckets.get(key, {})
        if acl not in bucket.get(acl.principal, ()):
            return
        _discard(bucket, acl.principal, acl)
        _discard(self._by_principal, (acl.resource_type, acl.principal), acl)
        self._count -= 1
        if bucket:
            return
        del self._buckets[key]
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._prefix_lengths[acl.resource_type]
            lengths[len(acl.resource_name)] -= 1
            if not lengths[len(acl.resource_name)]:
                del lengths[len(acl.resource_name)]

    def buckets_of(self, resource_type: ResourceType, name: str) -> Iterator[Bucket]:
        """The ACLs of every pattern that matches a resource: its name, its beginnings, and the wildcard."""
        buckets = self._buckets
        bucket = buckets.get((resource_type, PatternType.LITERAL, name))
        if bucket is not None:
            yield bucket
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                bucket = buckets.get((resource_type, PatternType.PREFIXED, name[:length]))
                if bucket is not None:
                    yield bucket
        if name != WILDCARD:
            bucket = buckets.get((resource_type, PatternType.LITERAL, WILDCARD))
            if bucket is not None:
                yield bucket

    def of_principals(self, resource_type: ResourceType, principals: Sequence[str]) -> Iterator[Acl]:
        """The ACLs of principals on resources of a type."""
        for principal in principals:
            yield from self._by_principal.get((resource_type, principal), ())


def _discard(groups: dict[K, dict[Acl, None]], key: K, acl: Acl) -> None:
    """Remove an ACL from its group, and the group with its last one."""
    del groups[key][acl]
    if not groups[key]:
        del groups[key]
