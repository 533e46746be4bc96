"""Configs of brokers, topics, groups and client metrics subscriptions: what is set, what the default is, what holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.configs import (
    CONFIG_SOURCES,
    DELETE,
    SET,
    ConfigChange,
    alter_config,
    describe_config,
    is_acted_on,
    list_config_resources,
)
from barnabas.client.cluster import Cluster
from barnabas.console.failures import unless_refused
from barnabas.console.pages import link, part
from barnabas.console.resources import Done, action, resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.console.values import BadInput
from barnabas.wire.configdef import NOT_ACTED_ON
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import DescribeConfigsResourceResult

Kind = Literal["topic", "broker", "group", "client-metrics"]
ALL_BROKERS = "default"
"""The name of the defaults of all brokers, here and in the command line."""
COLUMNS = ("key", "source", "is_set")
DEFAULT_SOURCE = 5
OWN_SOURCES = {"topic": {1}, "broker": {2, 4}, "group": {8}, "client-metrics": {7}}
"""The sources of keys that are set for the resource itself; a broker's file is static."""
TYPES = {
    1: "boolean",
    2: "text",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}


@dataclass(frozen=True)
class ConfigResources:
    """What has configs."""

    brokers: list[int]
    groups: list[str]
    """Groups on which keys are set."""
    client_metrics: list[str]
    """Subscriptions of client metrics."""


@resource("/configs", template="configs/list.html", summary="What has configs: brokers, groups, subscriptions.")
def resources(cluster: Cluster) -> ConfigResources:
    """Topics have a list of their own."""
    brokers = [broker.broker_id for broker in describe_cluster(cluster).brokers if not broker.is_fenced]
    return ConfigResources(brokers, _names(cluster, "group"), _names(cluster, "client-metrics"))


def _names(cluster: Cluster, kind: str) -> list[str]:
    """The resources of a kind; none at brokers that cannot list them."""
    try:
        return unless_refused(lambda: list_config_resources(cluster, kind), [])
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return []
        raise


@dataclass(frozen=True, kw_only=True)
class ConfigsQuery(TableQuery):
    """Whose configs are shown."""

    kind: Kind
    name: str
    only_set: bool = False
    """Only keys that differ from their default."""
    edit: str = ""
    """A key whose form is shown."""


@dataclass(frozen=True)
class Config:
    """One key."""

    key: str
    value: str | None
    """What holds; None for a secret, or if there is no value."""
    source: str
    default: str | None
    """The default of the key, as far as the broker tells."""
    is_set: bool
    """Whether it is set anywhere, not the default."""
    is_own: bool
    """Whether it is set for this resource, so that it can be reset."""
    is_secret: bool
    is_read_only: bool
    is_acted_on: bool
    """False: the broker knows the key, keeps it, and does nothing with it."""
    type: str
    documentation: str
    others: list[str]
    """Where else it is set, with the values: the first would hold without the one that holds."""


@dataclass(frozen=True)
class Configs:
    """The configs of one resource."""

    kind: str
    name: str
    title: str
    configs: Page[Config]
    edited: Config | None
    without_effect: int
    """Keys that are set and that the broker does not act on."""


@resource(
    "/configs/{kind}/{name}",
    template="configs/configs.html",
    summary="The configs of a broker, topic, group or metrics.",
)
def configs(cluster: Cluster, query: ConfigsQuery) -> Configs:
    """Every key, or those that are set."""
    every = [_config(query.kind, entry) for entry in _described(cluster, query.kind, query.name)]
    shown = [config for config in every if config.is_set or not query.only_set]
    edited = next((config for config in every if config.key == query.edit), None)
    if query.edit and edited is None:
        raise BadInput(f"edit: there is no key {query.edit!r}")
    return Configs(
        kind=query.kind,
        name=query.name,
        title=_title(query.kind, query.name),
        configs=paged(
            shown,
            query,
            columns=COLUMNS,
            search=lambda config: f"{config.key} {config.value} {config.documentation}",
            sort="key",
        ),
        edited=edited,
        without_effect=sum(config.is_set and not config.is_acted_on for config in every),
    )


def _described(cluster: Cluster, kind: str, name: str) -> list[DescribeConfigsResourceResult]:
    return describe_config(cluster, kind, _wire_name(kind, name), synonyms=True)


def _wire_name(kind: str, name: str) -> str:
    """The name as the protocol has it. `BadInput` for a broker that is not named by its id."""
    if kind != "broker":
        return name
    if name == ALL_BROKERS:
        return ""
    if not (name.isascii() and name.isdigit()):
        raise BadInput(f"name: a broker is named by its id, or {ALL_BROKERS!r}; not {name!r}")
    return name


def _title(kind: str, name: str) -> str:
    if kind == "broker":
        return "Defaults of all brokers" if name == ALL_BROKERS else f"Broker {name}"
    return {"topic": "Topic", "group": "Group", "client-metrics": "Client metrics"}[kind] + f" {name}"


def _config(kind: str, entry: DescribeConfigsResourceResult) -> Config:
    is_default = entry.config_source == DEFAULT_SOURCE
    default = next((each.value for each in entry.synonyms if each.source == DEFAULT_SOURCE), None)
    others = [
        f"{CONFIG_SOURCES.get(each.source, 'unknown')}: {each.name}={each.value}"
        for each in entry.synonyms
        if each.source not in (entry.config_source, DEFAULT_SOURCE) and not entry.is_sensitive
    ]
    return Config(
        key=entry.name,
        value=None if entry.is_sensitive else entry.value,
        source=CONFIG_SOURCES.get(entry.config_source, "unknown"),
        default=entry.value if is_default and default is None else default,
        is_set=not is_default,
        is_own=entry.config_source in OWN_SOURCES[kind] or (entry.config_source == 3 and kind == "broker"),
        is_secret=entry.is_sensitive,
        is_read_only=entry.read_only,
        is_acted_on=is_acted_on(entry),
        type=TYPES.get(entry.config_type, ""),
        documentation=(entry.documentation or "").removesuffix(NOT_ACTED_ON).strip(),
        others=others,
    )


@dataclass(frozen=True)
class SetConfig:
    """A key to set or to reset."""

    kind: Kind
    name: str
    key: Annotated[str, msgspec.Meta(min_length=1)]
    value: Annotated[str, msgspec.Meta(max_length=100_000)] = ""
    reset: bool = False
    """Reset it to what holds without it."""


@action("/configs/{kind}/{name}/set", summary="Set a key, or reset it to what holds without it.", secrets=("value",))
def set_config(cluster: Cluster, form: SetConfig) -> Done:
    """One key at a time."""
    change = ConfigChange(form.key, DELETE) if form.reset else ConfigChange(form.key, SET, form.value)
    alter_config(cluster, form.kind, _wire_name(form.kind, form.name), [change])
    done = f"{form.key} of {_subject(form.kind, form.name)} is {'reset' if form.reset else 'set'}."
    if not form.reset:
        changed = [each for each in _described(cluster, form.kind, form.name) if each.name == form.key]
        if changed and not is_acted_on(changed[0]):
            done += " The broker keeps it and does not act on it."
    return Done(done, link(f"/configs/{form.kind}/{part(form.name)}", search=form.key))


def _subject(kind: str, name: str) -> str:
    title = _title(kind, name)
    return title[:1].lower() + title[1:]
