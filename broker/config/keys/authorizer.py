"""The keys that Kafka's StandardAuthorizer reads of the configuration without declaring them."""

from __future__ import annotations

from barnabas.wire.configdef import HIGH, MEDIUM, boolean, string

SUPER_USERS = string(
    "super.users",
    "",
    "",
    HIGH,
    "Principals that may do everything, whatever the ACLs say, separated by semicolons: User:admin;User:broker.",
)
ALLOW_EVERYONE_IF_NO_ACL_FOUND = boolean(
    "allow.everyone.if.no.acl.found",
    False,
    MEDIUM,
    "Whether every user may use a resource without ACLs; otherwise only super users may.",
)
