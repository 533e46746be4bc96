"""kafka-configs of users, clients and ips: quotas and SCRAM credentials."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.cli.kafka_tools.arguments import Options, Usage
from barnabas.client.admin.quotas import alter_quotas, list_quotas
from barnabas.client.admin.users import alter_credentials, list_credentials
from barnabas.client.cluster import Cluster
from barnabas.client.security.scram import Credential, credential

TYPES: Final = {"users": "user", "clients": "client", "ips": "ip"}
"""Entity types, and the names of `client.quotas`."""
SHORT: Final = {"user": "users", "client": "clients", "ip": "ips"}
"""Options that name an entity."""
DEFAULTS: Final = {"user-defaults": "users", "client-defaults": "clients", "ip-defaults": "ips"}
TITLES: Final = {"user": "user-principal", "client": "client-id", "ip": "ip"}
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
IP_QUOTA: Final = "connection_creation_rate"
QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
CREDENTIAL: Final = re.compile(r"(?:iterations=(-?\d*),)?password=(.*)")
MIN_ITERATIONS, DEFAULT_ITERATIONS = 4096, 4096
FROM: Final = "using --bootstrap-server."

Changes = Mapping[str, str | None]


class Entities(NamedTuple):
    """Entity types in the order of the command line, and their names: "" is the default; some may have none."""

    types: list[str]
    names: list[str]


def entities(options: Options, arguments: Sequence[str]) -> Entities | None:
    """What the options name, if it is of these types; None for topics, brokers and so on. `Usage` for a mixture."""
    types = [str(kind) for kind in options.all("entity-type")]
    types += [kind for option, kind in (SHORT | DEFAULTS).items() if options.has(option)]
    if not any(kind in TYPES for kind in types):
        return None
    twice = sorted({kind for kind in types if types.count(kind) > 1})
    if twice:
        raise Usage(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise Usage("Only 'users' and 'clients' entity types may be specified together")
    names = _names_in_order(arguments, options)
    names += [str(options.only(option)) for option in SHORT if options.has(option)]
    names += ["" for option in DEFAULTS if options.has(option)]
    if len(names) > len(types):
        raise Usage("More entity names specified than entity types")
    if "ips" in types:
        for name in filter(None, names):
            _check_host(name)
    return Entities(types, names)


def _names_in_order(arguments: Sequence[str], options: Options) -> list[str]:
    """The names of --entity-name, and "" for each --entity-default, as they were given."""
    values = iter(options.all("entity-name"))
    words = [word.partition("=")[0] for word in arguments]
    return [
        str(next(values)) if word == "--entity-name" else ""
        for word in words
        if word in ("--entity-name", "--entity-default")
    ]


def _check_host(name: str) -> None:
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        raise Usage(f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}") from None


def check_named(entities: Entities) -> None:
    """What is altered must be named. `Usage` if it is not."""
    if not entities.names:
        raise Usage("An entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
    if len(entities.names) != len(entities.types):
        raise Usage("An entity-name or default entity must be specified with each entity type for --alter")


# --- describe


def describe(cluster: Cluster, entities: Entities) -> None:
    """Print quotas, and credentials unless client ids or defaults are meant."""
    named = dict(zip(entities.types, entities.names, strict=False))
    filter_ = {TYPES[kind]: name or None for kind, name in named.items()}
    every = [TYPES[kind] for kind in entities.types if kind not in named]
    for quota in list_quotas(cluster, filter_, every=every, strict=True):
        what = ", ".join(_title(kind, quota.entity[kind]) for kind in TITLES if kind in quota.entity)
        values = ", ".join(f"{key}={java_double(value)}" for key, value in quota.values.items())
        print(f"Quota configs for {what} are {values}")
    if entities.types == ["users"] and "" not in entities.names:
        _describe_credentials(cluster, entities.names)


def _title(kind: str, name: str | None) -> str:
    return f"the default {TITLES[kind]}" if name is None else f"{TITLES[kind]} '{name}'"


def _describe_credentials(cluster: Cluster, names: Sequence[str]) -> None:
    credentials = list_credentials(cluster)
    for user in dict.fromkeys(each.user for each in credentials):
        if user in names or not names:
            text = ", ".join(
                f"{each.mechanism}=iterations={each.iterations}" for each in credentials if each.user == user
            )
            print(f"SCRAM credential configs for user-principal '{user}' are {text}")


def java_double(value: float) -> str:
    """A number as Java's `Double.toString` writes it."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    shortest = next(text for digits in range(18) if float(text := f"{value:.{digits}e}") == value)
    mantissa, _, power = shortest.partition("e")
    return f"{float(mantissa)!r}E{int(power)}"


# --- alter


def alter(cluster: Cluster, entities: Entities, changes: Changes) -> None:
    """Change quotas or credentials of one entity. `Usage` for keys that it does not have."""
    if entities.types == ["ips"]:
        unknown = [key for key in changes if key != IP_QUOTA]
        if unknown:
            raise Usage(
                f"Only connection quota configs can be added for 'ips' {FROM} Unexpected config names: "
                f"{','.join(unknown)}"
            )
        _alter_quotas(cluster, entities, changes)
    elif _check_keys(entities, changes):
        _alter_credentials(cluster, entities.names[0], changes)
    else:
        _alter_quotas(cluster, entities, changes)
    kind, name = entities.types[0], entities.names[0]
    if name:
        print(f"Completed updating config for {kind.removesuffix('s')} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _check_keys(entities: Entities, changes: Changes) -> bool:
    """Whether the changes are of SCRAM credentials, and not of quotas. `Usage` for keys that may not be changed."""
    scram = [key for key in changes if key in SCRAM]
    unknown = [key for key in changes if key not in SCRAM and key not in QUOTAS]
    if "clients" in entities.types:
        _refuse(changes, [*unknown, *scram], "Only quota configs", "clients")
        return False
    _refuse(changes, unknown, "Only quota and SCRAM credential configs", "users")
    if scram and "" in entities.names:
        raise Usage(f"The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials {FROM}")
    if scram and len(scram) < len(changes):
        raise Usage(f"Cannot alter both quota and SCRAM credential configs simultaneously for 'users' {FROM}")
    return bool(scram)


def _refuse(changes: Changes, keys: Iterable[str], what: str, kind: str) -> None:
    wrong = list(keys)
    for verb, names in (
        ("added", [key for key in wrong if changes[key] is not None]),
        ("deleted", [key for key in wrong if changes[key] is None]),
    ):
        if names:
            text = ", ".join(names)
            raise Usage(f"{what} can be {verb} for '{kind}' {FROM} Unexpected config names: Set({text})")


def _alter_quotas(cluster: Cluster, entities: Entities, changes: Changes) -> None:
    entity = {TYPES[kind]: name or None for kind, name in zip(entities.types, entities.names, strict=True)}
    values: dict[str, float | None] = {}
    for key, text in changes.items():
        try:
            values[key] = None if text is None else float(text)
        except ValueError:
            raise Usage(f"Cannot parse quota configuration value for {key}: {text}") from None
    has = {key for quota in list_quotas(cluster, entity, strict=True) for key in quota.values}
    missing = [key for key, value in values.items() if value is None and key not in has]
    if missing:
        raise Usage(f"Invalid config(s): {','.join(missing)}")
    alter_quotas(cluster, entity, values)


def _alter_credentials(cluster: Cluster, user: str, changes: Changes) -> None:
    new: list[Credential] = []
    for mechanism, text in changes.items():
        if text is None:
            continue
        match = CREDENTIAL.fullmatch(text)
        if match is None:
            shown = re.sub(r"=(?!\d+(,|$)).*", "=[hidden]", text)  # what is not a number may be a password
            raise Usage(f"Invalid credential property {mechanism.replace('-', '_')}={shown}")
        iterations = int(match[1] or DEFAULT_ITERATIONS)
        if iterations < MIN_ITERATIONS:
            raise Usage(f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for {mechanism}")
        new.append(credential(mechanism, match[2], iterations))
    alter_credentials(cluster, user, new, [key for key, text in changes.items() if text is None])
