"""What a parameter may be: names of topics, groups, keys and profiles, some of them asked of the broker.

A parameter is recognized by its metavar (`TOPIC...`, `GROUP`, `KEY=VALUE`), so that a new command has completion
without saying so. A broker that does not answer within `PATIENCE_S` gives no names;
the shell is not held up longer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from threading import Thread
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from barnabas.cli.connect.security import security
from barnabas.cli.connect.settings import SETTINGS, SettingsError, config_file, read_file, setting
from barnabas.terminal.plural import plural
from barnabas.terminal.tables import OUTPUTS

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.wire.configdef import ConfigKey

PATIENCE_S = 0.5
"""How long the broker may take, seconds; with the start of Python a TAB takes less than a second."""
PATIENCE_VARIABLE = "BARNABAS_COMPLETION_TIMEOUT"
"""Sets another time, for brokers that are far away."""

Item = CompletionItem[str]
Source = Callable[[click.Context, str], Iterable[Item]]


def items_for(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item] | None:
    """The values of a parameter that start with `incomplete`; None if only click knows what it may be."""
    source = _source(ctx, param)
    if source is None:
        return None
    present = ctx.params.get(param.name or "")
    used = set(present) if isinstance(present, tuple) and all(isinstance(value, str) for value in present) else set()
    items = source(ctx, incomplete)
    return [
        item
        for item in items
        if item.type in ("file", "dir") or (item.value.startswith(incomplete) and item.value not in used)
    ]


def _source(ctx: click.Context, param: click.Parameter) -> Source | None:
    if "--partition" in param.opts:
        return _partitions
    if not isinstance(param.type, type(click.STRING)):
        return None
    words = re.findall(r"[A-Z_-]+(?:\[?:[A-Z]+\b|=[A-Z]+)?", param.make_metavar(ctx))
    about_profiles = " profile " in ctx.command_path
    if "--profile" in param.opts or (about_profiles and words[:1] == ["NAME"] and ctx.info_name != "create"):
        return _profiles
    if "-X" in param.opts or (about_profiles and words[:1] == ["KEY=VALUE"]):
        return _settings
    return SOURCES.get(words[0].replace("[", "")) if words else None


# --- names that the broker has


def _ask(ctx: click.Context, question: Callable[[Cluster], list[Item]]) -> list[Item]:
    """What the broker answers in time, otherwise nothing."""
    from barnabas.client.admin import topics as admin  # noqa: F401 - imported before the time runs
    from barnabas.client.cluster import Cluster
    from barnabas.client.groups import consumer_groups as groups  # noqa: F401 - imported before the time runs

    address = ctx.params.get("bootstrap") or setting("bootstrap")
    try:
        secured = security()  # here, because click's context is this thread's
    except SettingsError:
        return []
    patience_s = float(os.environ.get(PATIENCE_VARIABLE) or PATIENCE_S)
    items: list[Item] = []

    def ask() -> None:
        try:
            with Cluster(
                str(address), client_id="barnabas-completion", timeout_s=patience_s, security=secured
            ) as cluster:
                items.extend(question(cluster))
        except Exception:  # noqa: S110 - whatever is wrong, a TAB shows nothing
            pass

    asking = Thread(target=ask, daemon=True)  # a thread, because looking up a host's name has no timeout
    asking.start()
    asking.join(patience_s)
    return list(items)


def _from_broker(question: Callable[[Cluster], list[Item]]) -> Callable[[click.Context, str], list[Item]]:
    """A source that asks the broker one question, whatever was typed."""
    return lambda ctx, _: _ask(ctx, question)


def _topics(ctx: click.Context, incomplete: str) -> list[Item]:
    def question(cluster: Cluster) -> list[Item]:
        from barnabas.client.admin.topics import list_topics

        return [
            Item(topic.name or "", help=_count(len(topic.partitions), "partition"))
            for topic in list_topics(cluster)
            if not topic.is_internal or incomplete.startswith("_")
        ]

    return _ask(ctx, question)


def _topics_or_partitions(ctx: click.Context, incomplete: str) -> list[Item]:
    """`orders`, then `orders:0` to `orders:2`."""
    name, colon, _ = incomplete.partition(":")
    if not colon:
        return _topics(ctx, incomplete)
    return _ask(ctx, lambda cluster: [Item(f"{name}:{index}") for index in _indexes(cluster, name)])


def _partitions(ctx: click.Context, incomplete: str) -> list[Item]:  # noqa: ARG001
    names = ctx.params.get("topics") or ctx.params.get("topic") or ()
    name = names if isinstance(names, str) else next(iter(names), None)
    if not name:
        return []
    return _ask(ctx, lambda cluster: [Item(str(index)) for index in _indexes(cluster, name)])


def _indexes(cluster: Cluster, name: str) -> range:
    return range(len(cluster.find_topic(name).leaders))


@_from_broker
def _groups(cluster: Cluster) -> list[Item]:
    from barnabas.client.groups.consumer_groups import list_groups

    return [
        Item(group.group_id, help=" ".join(filter(None, (group.group_state, group.group_type))) or None)
        for group in list_groups(cluster)
    ]


def _patterns(ctx: click.Context, incomplete: str) -> list[Item]:
    return _groups(ctx, incomplete) if " group " in ctx.command_path else _topics(ctx, incomplete)


@_from_broker
def _nodes(cluster: Cluster) -> list[Item]:
    brokers = cluster.retry(lambda deadline: cluster.metadata([], deadline)).brokers
    return [Item(str(node.node_id), help=f"{node.host}:{node.port}") for node in brokers]


@_from_broker
def _transactional_ids(cluster: Cluster) -> list[Item]:
    from barnabas.client.admin.transactions import list_transactions

    return [Item(transaction.transactional_id, help=transaction.state) for transaction in list_transactions(cluster)]


def _features(ctx: click.Context, incomplete: str) -> list[Item]:
    """`transaction.version=`, then the levels."""
    named, equals, _ = incomplete.partition("=")

    def question(cluster: Cluster) -> list[Item]:
        from barnabas.client.admin.cluster import describe_features

        features = describe_features(cluster)
        if not equals:
            return [Item(f"{feature.name}=", type="open") for feature in features]
        return [
            Item(f"{feature.name}={level}")
            for feature in features
            if feature.name == named
            for level in range(feature.lowest, feature.highest + 1)
        ]

    return _ask(ctx, question)


@_from_broker
def _users(cluster: Cluster) -> list[Item]:
    """Users with SCRAM credentials."""
    from barnabas.client.admin.users import list_credentials

    return [Item(name) for name in dict.fromkeys(credential.user for credential in list_credentials(cluster))]


@_from_broker
def _tokens(cluster: Cluster) -> list[Item]:
    from barnabas.client.admin.tokens import list_tokens

    return [Item(token.token_id, help=token.owner) for token in list_tokens(cluster)]


def _quotas(ctx: click.Context, incomplete: str) -> Iterator[Item]:
    """`producer_byte_rate=`, or the name alone where it is removed."""
    from barnabas.client.admin.quotas import KEYS

    ends = "" if ctx.info_name == "remove" else "="
    if "=" not in incomplete:
        yield from (Item(f"{key}{ends}", type="open" if ends else "plain", help=text) for key, text in KEYS.items())


def _principals(ctx: click.Context, incomplete: str) -> list[Item]:
    return [Item(f"User:{user.value}") for user in _users(ctx, incomplete)]


def _resources(ctx: click.Context, incomplete: str) -> Iterable[Item]:
    """NAME of `config get KIND NAME` and `acl add KIND NAME`."""
    kinds: dict[object, Source] = {
        "topic": _topics,
        "group": _groups,
        "broker": _nodes,
        "transactional-id": _transactional_ids,
        "user": _users,
    }
    source = kinds.get(ctx.params.get("kind"))
    return source(ctx, incomplete) if source else []


# --- names that need no broker


def _keys(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    yield from (Item(name, help=key.doc) for name, key in _declared(ctx).items())


def _keys_and_values(ctx: click.Context, incomplete: str) -> Iterator[Item]:
    """`cleanup.policy=`, then the values of keys that have few."""
    name, equals, _ = incomplete.partition("=")
    for key in _declared(ctx).values():
        if not equals:
            yield Item(f"{key.name}=", type="open", help=key.doc)
        elif key.name == name:
            yield from (Item(f"{name}={value}") for value in _values(key))


def _declared(ctx: click.Context) -> dict[str, ConfigKey[Any]]:
    """The config keys that a command may set."""
    from barnabas.storage.topic_keys import TOPIC_KEYS

    kind = ctx.params.get("kind")
    if kind == "group":
        from barnabas.broker.config.keys.resources import GROUP_KEYS

        return GROUP_KEYS
    if kind == "broker" or ctx.info_name == "serve":
        from barnabas.broker.config.keys import BROKER_KEYS

        return BROKER_KEYS
    return TOPIC_KEYS


def _values(key: ConfigKey[Any]) -> list[str]:
    if key.type == "BOOLEAN":
        return ["true", "false"]
    listed = re.fullmatch(r"\[([^.\[\]]*)\]", key.valid or "")
    return [word.strip() for word in listed[1].split(",")] if listed and not listed[1][:1].isdigit() else []


def _profiles(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    for name, settings in read_file()["profiles"].items():
        yield Item(name, help=settings.get("bootstrap"))


def _settings(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    if "=" not in incomplete:
        from barnabas.client.security.keys import KEYS

        yield from (Item(f"{name}=", type="open") for name in (*SETTINGS, *KEYS))
    yield from (Item(f"output={name}") for name in OUTPUTS if "=" in incomplete)


def _addresses(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    yield from (Item(address) for address in {str(setting("bootstrap")), "127.0.0.1:9092"})
    if config_file().exists():
        yield from (
            Item(profile["bootstrap"], help=name)
            for name, profile in read_file()["profiles"].items()
            if "bootstrap" in profile
        )


def _positions(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    group = " group " in ctx.command_path
    yield from (Item(word) for word in (("earliest", "latest") if group else ("beginning", "end")))
    yield Item("@-1h", help="the first record of the last hour")


def _words(*words: str) -> Source:
    return lambda _ctx, _incomplete: [Item(word) for word in words]


def _jobs(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    from barnabas.spark.jobs import NAMES

    yield from (Item(name) for name in NAMES)


def _messages(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    from barnabas.wire.registry import all_messages

    yield from (Item(name) for name in all_messages())


def _apis(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    from barnabas.wire.registry import all_messages

    yield from (Item(name.removesuffix("Request")) for name in all_messages() if name.endswith("Request"))


def _errors(ctx: click.Context, incomplete: str) -> Iterator[Item]:  # noqa: ARG001
    from barnabas.wire.errors import ErrorCode

    yield from (Item(code.name) for code in ErrorCode if code)


def _count(number: int, what: str) -> str:
    return f"{number} {plural(what, number)}"


SOURCES: dict[str, Source] = {
    "TOPIC": _topics,
    "PATTERN": _patterns,
    "TOPIC:PARTITION": _topics_or_partitions,
    "GROUP": _groups,
    "NODE": _nodes,
    "NODE:NODE": _nodes,
    "TRANSACTIONAL-ID": _transactional_ids,
    "FEATURE=LEVEL": _features,
    "NAME": _resources,
    "KEY": _keys,
    "KEY=VALUE": _keys_and_values,
    "HOST:PORT": _addresses,
    "FROM:TO": _positions,
    "OFFSET": _positions,
    "WHERE": _positions,
    "USER": _users,
    "TYPE:NAME": _principals,
    "QUOTA": _quotas,
    "QUOTA=VALUE": _quotas,
    "TOKEN-ID": _tokens,
    "CODEC": _words("none", "gzip", "snappy", "lz4", "zstd"),
    "STATE": _words("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead"),
    "JOB": _jobs,
    "MESSAGE": _messages,
    "API": _apis,
    "ERROR": _errors,
    "FILE": lambda _, incomplete: [Item(incomplete, type="file")],
    "DIR": lambda _, incomplete: [Item(incomplete, type="dir")],
}
"""What the first word of a metavar stands for."""
