"""Authorization of requests: the rules of `coord.security`, a cache of decisions, the audit log.

A decision stays the same until an ACL changes, so each is made once for a principal, its host, an operation and a
resource; any change of ACLs drops all of them. Topics that are allowed are in sets that connections keep
(`granted_topics`), so that the next request is one look into a set; a change of ACLs empties the sets. The audit log
has Kafka's logger, levels and form: denials at INFO, permissions at DEBUG. Source: Kafka 4.4 `AuthHelper`,
`StandardAuthorizerData.logAuditMessage`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.config.authorizer import super_users
from barnabas.broker.config.keys.authorizer import ALLOW_EVERYONE_IF_NO_ACL_FOUND
from barnabas.coord.security.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, Acl, Operation, ResourceType, recorded_acl
from barnabas.coord.security.host_patterns import java_host
from barnabas.coord.security.standard_authorizer import Decision, StandardAuthorizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.wire.api_keys import ApiKey
    from barnabas.wire.messages.records.metadata_records import AccessControlEntryRecord
    from barnabas.wire.principal import KafkaPrincipal
    from barnabas.wire.types import Uuid

audit_logger = logging.getLogger("kafka.authorizer.logger")

TRACE: Final = 5
"""The level below DEBUG, for decisions that Kafka makes without an entry in the audit log."""
MOST_REMEMBERED: Final = 20_000
"""The most cached decisions; one more empties the cache. The same limit holds for ids of topics."""

_NOBODY: Final[frozenset[str]] = frozenset()


class Requester(Protocol):
    """The sender of a request: the part of its context that is needed here."""

    @property
    def api_key(self) -> ApiKey:
        """The API of the request."""

    @property
    def principal(self) -> KafkaPrincipal:
        """The principal that has sent the request."""

    @property
    def peer_host(self) -> str:
        """The client's address."""


class _Requester(NamedTuple):
    """The sender of a request that has ended."""

    api_key: ApiKey
    principal: KafkaPrincipal
    peer_host: str


def authorizer_of(config: ServerConfig) -> Authorizer:
    """The authorizer with the settings of a broker."""
    allows = config[ALLOW_EVERYONE_IF_NO_ACL_FOUND]
    return Authorizer(StandardAuthorizer(super_users(config), allows_without_acls=allows))


class Authorizer:
    """Decides whether a request is allowed."""

    def __init__(self, rules: StandardAuthorizer) -> None:
        self.rules = rules
        self._acls: dict[Uuid, Acl] = {}
        self._decisions: dict[tuple[KafkaPrincipal, str, Operation, ResourceType, str], Decision] = {}
        self._allowed: dict[tuple[KafkaPrincipal, str, Operation, ResourceType], set[str | bytes]] = {}
        """The names of the decisions that allow, and ids of topics with these names."""
        self._granted_ids = 0
        self._of_types: dict[tuple[KafkaPrincipal, str, Operation, ResourceType], bool] = {}

    # Changes of ACLs

    def load(self, image: ClusterImage) -> None:
        """Take over the ACLs of an image."""
        self._update(self._acls.keys() | image.acls.keys(), image.acls)

    def apply(self, image: ClusterImage, delta: ClusterDelta) -> None:
        """Take over the ACLs that have changed."""
        if delta.changed_acls:
            self._update(delta.changed_acls, image.acls)

    def _update(self, changed: Iterable[Uuid], records: Mapping[Uuid, AccessControlEntryRecord]) -> None:
        added = []
        for acl_id in changed:
            old = self._acls.pop(acl_id, None)
            if old is not None:
                self.rules.index.remove(old)
            record = records.get(acl_id)
            if record is not None:
                added.append((acl_id, recorded_acl(record)))
        for acl_id, acl in added:
            self._acls[acl_id] = acl
            self.rules.index.add(acl)
        self.forget()

    # Sets that connections keep

    def granted_topics(self, who: Requester, operation: Operation) -> set[str | bytes]:
        """The topics, by name or by id, on which a principal is known to be allowed an operation from its host.

        Later decisions add to the set. `forget` empties it, and nothing is added to it any more. It stays empty while
        permissions are logged in the audit log, since each of them then needs a new decision.
        """
        if audit_logger.isEnabledFor(logging.DEBUG):
            return set()
        return self._allowed.get((who.principal, who.peer_host, operation, ResourceType.TOPIC)) or set()

    def grant_ids(self, who: Requester, operation: Operation, topics: Collection[tuple[str, Uuid]]) -> None:
        """Remember also the ids of topics whose names are allowed: an id never belongs to another name."""
        granted = self.granted_topics(who, operation)
        new = {topic_id for name, topic_id in topics if name in granted} - granted
        if self._granted_ids + len(new) > MOST_REMEMBERED:
            self.forget()
            return
        self._granted_ids += len(new)
        granted |= new

    def forget(self) -> None:
        """Forget all decisions. Also called when the level of the audit log changes."""
        self._decisions.clear()
        for names in self._allowed.values():
            names.clear()  # connections may have it
        self._allowed.clear()
        self._granted_ids = 0
        self._of_types.clear()

    # Questions

    def is_allowed(
        self,
        who: Requester,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_allowed: bool = True,
        logs_denied: bool = True,
        count: int = 1,
    ) -> bool:
        """Whether a request is allowed an operation on a resource, which it names `count` times."""
        key = (who.principal, who.peer_host, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(key)
        if decision.is_allowed:
            level = logging.DEBUG if logs_allowed else TRACE
        else:
            level = logging.INFO if logs_denied else TRACE
        if audit_logger.isEnabledFor(level):
            self._log(level, who, key, decision, count)
        return decision.is_allowed

    def is_allowed_on_cluster(
        self, who: Requester, operation: Operation, *, logs_allowed: bool = True, logs_denied: bool = True
    ) -> bool:
        """Whether a request is allowed an operation on the cluster."""
        return self.is_allowed(
            who, operation, ResourceType.CLUSTER, CLUSTER_NAME, logs_allowed=logs_allowed, logs_denied=logs_denied
        )

    def refused(
        self,
        who: Requester,
        operation: Operation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        logs_allowed: bool = True,
        logs_denied: bool = True,
    ) -> Collection[str]:
        """The resources on which a request is denied an operation; each is decided once."""
        if not audit_logger.isEnabledFor(logging.DEBUG):  # nearly always all are known to be allowed
            known = self._allowed.get((who.principal, who.peer_host, operation, resource_type), _NOBODY)
            names = [name for name in names if name not in known]
            if not names:
                return _NOBODY
        log = {"logs_allowed": logs_allowed, "logs_denied": logs_denied}
        return {
            name
            for name, count in Counter(names).items()
            if not self.is_allowed(who, operation, resource_type, name, count=count, **log)
        }

    def is_any_allowed(self, who: Requester, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource of this type on which the request is allowed the operation."""
        key = (who.principal, who.peer_host, operation, resource_type)
        is_allowed = self._of_types.get(key)
        if is_allowed is None:
            if len(self._of_types) >= MOST_REMEMBERED:
                self.forget()
            is_allowed = self._of_types[key] = self.rules.decide_by_resource_type(
                str(who.principal), java_host(who.peer_host), operation, resource_type
            )
        return is_allowed

    def operations(self, who: Requester, resource_type: ResourceType, name: str) -> int:
        """The operations on a resource that the request is allowed, bit n for the operation n (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.is_allowed(who, operation, resource_type, name, logs_allowed=False, logs_denied=False)
        )

    def topics_seen_by(self, who: Requester) -> Callable[[str], bool]:
        """Return a function that tells whether a client may describe a topic, also after its request has ended."""
        requester = _Requester(who.api_key, who.principal, who.peer_host)

        def may_describe(name: str) -> bool:
            return self.is_allowed(requester, Operation.DESCRIBE, ResourceType.TOPIC, name, logs_denied=False)

        return may_describe

    def _decide(self, key: tuple[KafkaPrincipal, str, Operation, ResourceType, str]) -> Decision:
        if len(self._decisions) >= MOST_REMEMBERED:
            self.forget()
        principal, host, operation, resource_type, name = key
        decision = self.rules.decide(str(principal), java_host(host), operation, resource_type, name)
        self._decisions[key] = decision
        if decision.is_allowed:
            self._allowed.setdefault((principal, host, operation, resource_type), set()).add(name)
        return decision

    @staticmethod
    def _log(
        level: int,
        who: Requester,
        key: tuple[KafkaPrincipal, str, Operation, ResourceType, str],
        decision: Decision,
        count: int,
    ) -> None:
        principal, host, operation, resource_type, name = key
        audit_logger.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s "
            "with resourceRefCount = %d based on rule %s",
            principal,
            "Allowed" if decision.is_allowed else "Denied",
            operation.name,
            java_host(host),
            resource_type.title,
            name,
            who.api_key.name.title().replace("_", ""),
            count,
            decision.rule,
        )
