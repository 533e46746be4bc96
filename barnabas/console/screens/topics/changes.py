"""Create, clone, grow, empty and delete topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.topics import (
    add_partitions,
    create_topic,
    delete_records,
    delete_topics,
    describe_topics,
    wait_for_topic,
)
from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_first
from barnabas.client.offsets import end_offsets, start_offsets
from barnabas.console.pages import part
from barnabas.console.resources import Done, action, resource
from barnabas.console.values import BadInput
from barnabas.terminal.plural import plural

Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


@dataclass(frozen=True)
class NewTopicQuery:
    """What a new topic begins with."""

    like: str = ""
    """A topic whose partitions, replicas and settings are taken."""


@dataclass(frozen=True)
class NewTopic:
    """The values with which the form begins; None: the broker's default."""

    like: str
    partitions: int | None
    replication_factor: int | None
    configs: dict[str, str]


@resource("/new-topic", template="topics/new.html", summary="What a new topic begins with.")
def new_topic(cluster: Cluster, query: NewTopicQuery) -> NewTopic:
    """The values of the topic that is cloned, or none."""
    if not query.like:
        return NewTopic("", None, None, {})
    described = describe_topics(cluster, [query.like])[0]
    factor = max((len(each.replica_nodes) for each in described.partitions), default=1)
    return NewTopic(query.like, len(described.partitions), factor, _own_configs(cluster, query.like))


def _own_configs(cluster: Cluster, topic: str) -> dict[str, str]:
    """The keys that are set for a topic."""
    return {
        config.name: config.value or ""
        for config in topic_configs(cluster, [topic])[topic]
        if config.config_source == 1 and not config.is_sensitive
    }


@dataclass(frozen=True)
class CreateTopic:
    """A topic to create."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=249)]
    partitions: Count | None = None
    """None: as the broker's num.partitions."""
    replication_factor: Count | None = None
    """None: as the broker's default.replication.factor."""
    config_lines: str = ""
    """Lines KEY=VALUE, of a form."""
    configs: dict[str, str] = field(default_factory=dict)


@action("/new-topic", summary="Create a topic.")
def create(cluster: Cluster, form: CreateTopic) -> Done:
    """With these settings."""
    configs = form.configs | config_lines(form.config_lines)
    created = create_topic(
        cluster,
        form.name,
        partitions=form.partitions or -1,
        replication_factor=form.replication_factor or -1,
        configs=configs,
    )
    wait_for_topic(cluster, form.name)
    count = created.num_partitions
    return Done(
        f"Topic {form.name} is created" + (f" with {_partitions(count)}." if count > 0 else "."),
        f"/topics/{part(form.name)}",
    )


def config_lines(text: str) -> dict[str, str]:
    """The keys and values of lines KEY=VALUE; empty lines are skipped."""
    configs: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not key.strip():
            raise BadInput(f"config_lines: a line must be KEY=VALUE, not {line!r}")
        configs[key.strip()] = value.strip()
    return configs


@dataclass(frozen=True)
class AddPartitions:
    """How many partitions a topic shall have."""

    topic: str
    total: Count


@action("/topics/{topic}/add-partitions", summary="Add partitions to a topic.")
def grow(cluster: Cluster, form: AddPartitions) -> Done:
    """Partitions cannot be removed."""
    add_partitions(cluster, {form.topic: form.total})
    return Done(f"Topic {form.topic} has {_partitions(form.total)}.", f"/topics/{part(form.topic)}")


@dataclass(frozen=True)
class EmptyTopic:
    """A topic whose records are deleted."""

    topic: str
    partitions: list[Annotated[int, msgspec.Meta(ge=0)]] | None = None
    """None: all."""


@action("/topics/{topic}/empty", summary="Delete all records of a topic, up to the present end.", timeout_s=60)
def empty(cluster: Cluster, form: EmptyTopic) -> Done:
    """The offsets go on where they are."""
    described = describe_topics(cluster, [form.topic])[0]
    known = [each.partition_index for each in described.partitions]
    chosen = known if form.partitions is None else form.partitions
    unknown = [index for index in chosen if index not in known]
    if unknown:
        raise BadInput(f"partitions: topic {form.topic!r} has no partition {unknown[0]}")
    partitions = [(form.topic, index) for index in chosen]
    starts, ends = start_offsets(cluster, partitions), end_offsets(cluster, partitions)
    raise_first(delete_records(cluster, {which: end for which, end in ends.items() if end > starts[which]}).values())
    count = sum(end - starts[which] for which, end in ends.items())
    deleted = "1 offset is" if count == 1 else f"{count:,} offsets are"
    return Done(f"{deleted} deleted of topic {form.topic}.", f"/topics/{part(form.topic)}")


@dataclass(frozen=True)
class DeleteTopic:
    """A topic to delete."""

    topic: str
    confirm: str
    """The name again: it is a mistake that cannot be undone."""


@action("/topics/{topic}/delete", summary="Delete a topic with all its records. `confirm` is its name again.")
def delete_topic(cluster: Cluster, form: DeleteTopic) -> Done:
    """At once."""
    if form.confirm != form.topic:
        raise BadInput(f"confirm: type the name of the topic, {form.topic}, to delete it")
    delete_topics(cluster, [form.topic])
    return Done(f"Topic {form.topic} is deleted.", "/topics")


def _partitions(count: int) -> str:
    return f"{count:,} {plural('partition', count)}"
