"""The generated page `docs/reference/access.md`: how an authorizer decides, and a table of permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from scripts.pages.access_rules import BROKER_RULES, CONTROLLER_RULES, rows

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

_HEAD = ("request", "needs", "error without it")


def page(generated: str, table: Table) -> str:
    """The page; `generated` is the comment at its top, `table` makes a table of Markdown."""
    parts = [
        "# Security",
        generated,
        _GUIDES,
        _AUTHORIZATION,
        "## Who may do what",
        _WHO,
        table(_HEAD, rows(BROKER_RULES)),
        "### On the listeners of controllers",
        _CONTROLLERS,
        table(_HEAD, rows(CONTROLLER_RULES)),
    ]
    return "\n\n".join(parts) + "\n"


_GUIDES = """\
[securing.md](../securing.md) is the way from nothing to a secured broker, step by step.
[threat-model.md](../evidence/threat-model.md) says what is protected, from whom, and what is not.
This page lists the rights that each request needs."""

_AUTHORIZATION = """\
## Authorization

With `authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer`, or `barnabas` for short, ACLs
decide what a principal may do, as in Apache Kafka 4.4.0. Every node of a cluster needs the same setting, controllers
included. Without it every client may do everything, and requests for ACLs are answered SECURITY_DISABLED. Another class
stops the start: Barnabas runs no Java.

A decision is made in this order:

1. A principal of `super.users` (`User:admin;User:broker`) may do everything.
2. An ACL that denies wins over every one that allows.
3. An ACL that allows.
4. `allow.everyone.if.no.acl.found` decides about a resource without ACLs (false by default). Otherwise denied.

An ACL names a principal (`User:alice`, or `User:*` for all), a host (an address, a range as `10.0.0.0/8`, or
`*`), an operation, and a resource by its name, by a prefix, or `*` for all of the type. IPv6 addresses are written
without `::`, as Java does: `2001:db8:0:0:0:0:0:1`. Ranges need the metadata version 4.4-IV1. READ, WRITE,
DELETE and ALTER include DESCRIBE; ALTER_CONFIGS includes DESCRIBE_CONFIGS. A denial denies only its operation.

`barnabas serve --secure` sets all this up for one broker: TLS, a CA, a super user, and the authorizer
([operations.md](../operations.md#tls-users-and-acls-in-one-step)).

A client without authentication is `User:ANONYMOUS`. The brokers and the controllers of a cluster use each other's
listeners too: their principals must be super users, or be allowed CLUSTER_ACTION on the cluster. If a broker forwards
a request to the controller, the controller decides, with the client's principal.

CreateAcls makes ACLs, from the admin client of every library and from `kafka-acls`. They are
records of the cluster's metadata, and take effect on a broker when it has them. A decision is remembered until an ACL
changes.

The logger `kafka.authorizer.logger` has the audit log, in Kafka's form: denied operations at the level INFO, allowed
operations at DEBUG, each with the rule that decided. Look-ups, such as the topics of a filtered list, are not logged.
A producer that may write to no topic is denied IDEMPOTENT_WRITE, which Kafka does not log."""

_WHO = """\
A request needs all of its rows. Names of resources come from the request. If an item of a request is refused, the
other items are answered."""

_CONTROLLERS = """\
Requests of administrators need the same rights on a controller as on a broker. These requests exist only here:"""
