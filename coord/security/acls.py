"""Access control lists as values: which principal may do what, from which host, to which resources. KIP-11, KIP-290.

Codes and texts are Kafka 4.4's: `AclOperation`, `ResourceType`, `PatternType`, `AclPermissionType`,
`StandardAcl`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from barnabas.wire.messages.records.metadata_records import AccessControlEntryRecord

E = TypeVar("E", bound=IntEnum)

WILDCARD: Final = "*"
"""As a host: every host. As the name of a LITERAL resource: every resource of the type."""
WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of the type CLUSTER."""


class Operation(IntEnum):
    """What a principal does to a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    __hash__ = int.__hash__  # Enum's is a function of Python, and every decision is looked up by it


class ResourceType(IntEnum):
    """What kinds of resources there are."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    __hash__ = int.__hash__

    @property
    def title(self) -> str:
        """The name as Kafka prints it: TransactionalId."""
        return self.name.title().replace("_", "")


class PatternType(IntEnum):
    """How the name of an ACL's resource is to be read; ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """What an ACL says; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """One rule. Two equal rules are the same: there is never more than one of them."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"StandardAcl[resourceType={self.resource_type.name}, resourceName={self.resource_name}, "
            f"patternType={self.pattern_type.name}, principal={self.principal}, host={self.host}, "
            f"operation={self.operation.name}, permissionType={self.permission.name}]"
        )


def known(kind: type[E], code: int) -> E:
    """The member with a code, UNKNOWN (0) for a code that is none: records of a later Kafka may have such."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def recorded_acl(record: AccessControlEntryRecord) -> Acl:
    """The rule of a metadata record."""
    return Acl(
        known(ResourceType, record.resource_type),
        record.resource_name,
        known(PatternType, record.pattern_type),
        record.principal,
        record.host,
        known(Operation, record.operation),
        known(Permission, record.permission_type),
    )


IMPLIED_BY: Final[dict[Operation, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""The operations whose ALLOW allows an operation too; a DENY denies nothing but its own."""

SUPPORTED_OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations that a resource of a type knows, as the authorized operations of responses name them (KIP-430)."""
