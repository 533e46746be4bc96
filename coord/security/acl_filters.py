"""Filters of DescribeAcls and DeleteAcls. KIP-140, KIP-290.

Source: Kafka 4.4 `ResourcePatternFilter`, `AccessControlEntryFilter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.security.acls import WILDCARD, Acl, Operation, PatternType, Permission, ResourceType, known

if TYPE_CHECKING:
    from barnabas.wire.messages.security.acls import DeleteAclsFilter, DescribeAclsRequest


class AclFilter(NamedTuple):
    """Which ACLs are meant: a field that is None or ANY stands for all values."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    """MATCH finds every pattern that matches the resource of the name, ANY those with just this name."""
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    @property
    def unknown_part(self) -> str | None:
        """Kafka's name of the part with a value that is not known."""
        if self.resource_type == ResourceType.UNKNOWN or self.pattern_type == PatternType.UNKNOWN:
            return "patternFilter"
        if self.operation == Operation.UNKNOWN or self.permission == Permission.UNKNOWN:
            return "entryFilter"
        return None

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.LITERAL:
            return acl.resource_name == WILDCARD
        return self.resource_name.startswith(acl.resource_name)


def filter_of(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """The filter of a request."""
    return AclFilter(
        known(ResourceType, request.resource_type_filter),
        request.resource_name_filter,
        known(PatternType, request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        known(Operation, request.operation),
        known(Permission, request.permission_type),
    )
