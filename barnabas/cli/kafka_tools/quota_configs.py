"""kafka-configs for users, clients and ips: their quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from barnabas.cli.kafka_tools.arguments import Options, Usage

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

TYPES: Final = {"clients": "client-id", "users": "user", "ips": "ip"}
"""Kafka's names on the command line and in its protocol."""
SHORT: Final = {"client": "clients", "user": "users", "ip": "ips"}
"""Options that name an entity; with `-defaults` the default of its type."""
SHOWN: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
KEYS: Final = {
    "users": ("consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"),
    "clients": ("consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"),
    "ips": ("connection_creation_rate",),
}
KINDS: Final = {"users": "quota and SCRAM credential", "clients": "quota", "ips": "connection quota"}
PLAIN_FROM: Final = 1e-3
PLAIN_TO: Final = 1e7
"""Numbers between these Java prints without an exponent."""

Names = list[tuple[str, str | None]]
"""Types and names; "" is the default, None no name at all."""


def is_about_quotas(options: Options) -> bool:
    """Whether an entity of the command line is a user, a client or an address."""
    flags = [*SHORT, *(f"{name}-defaults" for name in SHORT)]
    return options.has(*flags) or bool(TYPES.keys() & set(options.all("entity-type")))


def entities(options: Options, arguments: Sequence[str]) -> Names:
    """The types, each with the name that belongs to it: they are in the same order."""
    types = [str(kind) for kind in options.all("entity-type")]
    given = [str(name) for name in options.all("entity-name")]
    words = [word.partition("=")[0] for word in arguments if word.startswith(("--entity-name", "--entity-default"))]
    names = [given.pop(0) if word == "--entity-name" else "" for word in words]
    for option, kind in SHORT.items():
        if options.has(option):
            types.append(kind)
            names.append(str(options.only(option)))
    for option, kind in SHORT.items():
        if options.has(f"{option}-defaults"):
            types.append(kind)
            names.append("")
    _check(types)
    if options.has("alter") and len(names) < len(types):
        raise Usage("An entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
    if len(names) > len(types):
        raise Usage("More entity names specified than entity types")
    return [(kind, names[place] if place < len(names) else None) for place, kind in enumerate(types)]


def _check(types: list[str]) -> None:
    others = sorted(set(types) - TYPES.keys())
    if others:
        raise Usage(f"{', '.join(others)} cannot be combined with users, clients and ips")
    if len(types) != len(set(types)):
        raise Usage(
            f"Duplicate entity type(s) specified: {', '.join(sorted({k for k in types if types.count(k) > 1}))}"
        )
    if len(types) > 1 and "ips" in types:
        raise Usage("Only 'users' and 'clients' entity types may be specified together")


def describe(cluster: Cluster, names: Names) -> None:
    """Print the quotas of all entities that have these types and names."""
    from barnabas.client.quotas import ANY_NAME, describe_quotas

    wanted = {TYPES[kind]: ANY_NAME if name is None else name or None for kind, name in names}
    for entity, settings in describe_quotas(cluster, wanted):
        whose = ", ".join(_shown(kind, entity[kind]) for kind in SHOWN if kind in entity)
        values = ", ".join(f"{key}={java_double(value)}" for key, value in settings.items())
        print(f"Quota configs for {whose} are {values}")


def _shown(kind: str, name: str | None) -> str:
    return f"the default {SHOWN[kind]}" if name is None else f"{SHOWN[kind]} '{name}'"


def alter(cluster: Cluster, names: Names, changes: Mapping[str, str | None]) -> None:
    """Set the quotas of one entity, or remove those whose value is None."""
    from barnabas.client.quotas import alter_quotas, describe_quotas

    kind, name = names[0]
    unknown = [key for key, value in changes.items() if value is not None and key not in KEYS[kind]]
    if unknown:
        raise Usage(
            f"Only {KINDS[kind]} configs can be added for '{kind}' using --bootstrap-server. Unexpected config names: "
            + (",".join(unknown) if kind == "ips" else f"Set({', '.join(unknown)})")
        )
    entity = {TYPES[kind]: name or None for kind, name in names}
    removed = [key for key, value in changes.items() if value is None]
    if removed:
        found = describe_quotas(cluster, entity)
        missing = [key for key in removed if not found or key not in found[0][1]]
        if missing:
            raise Usage(f"Invalid config(s): {','.join(missing)}")
    alter_quotas(cluster, entity, {key: _number(key, value) for key, value in changes.items()})
    if name:
        print(f"Completed updating config for {kind.removesuffix('s')} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _number(key: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise Usage(f"Cannot parse quota configuration value for {key}: {text}") from None


def java_double(value: float) -> str:
    """A number as Java prints it: 1024.0, 1.0E7."""
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_TO:
        return repr(float(value))
    digits, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
