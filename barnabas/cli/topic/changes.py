"""`barnabas topic create|alter|add-partitions|delete`."""

from __future__ import annotations

import click

from barnabas.cli.admin.config_changes import alter_resource, change_options, changes_from, config_values, show_changes
from barnabas.cli.options.parameters import cluster_options, yes_option
from barnabas.cli.options.patterns import confirm, have_patterns, regex_option, select
from barnabas.client.admin import topics as admin
from barnabas.client.admin.topics import create_topic, delete_topics, describe_topics, list_topics, wait_for_topic
from barnabas.client.cluster import Cluster
from barnabas.client.groups.views import groups_reading
from barnabas.terminal.notes import note
from barnabas.terminal.plural import plural
from barnabas.wire.errors import ErrorCode, KafkaError


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="[default: the broker's num.partitions]")
@click.option("-r", "--replicas", type=click.IntRange(min=1), help="[default: the broker's default.replication.factor]")
@click.option(
    "--replica-assignment",
    "assignment",
    metavar="NODE:NODE,...",
    help="The brokers of each partition, leader first: 1:2,2:1 are two partitions with two replicas.",
)
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="A topic key, as retention.ms=7d; may be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic exists.")
@click.option("--dry-run", is_flag=True, help="Only have the broker check the topics.")
@cluster_options
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    cluster: Cluster,
) -> None:
    """Create topics."""
    settings = config_values(configs, "-c")
    placed = [] if assignment is None else _assignment(assignment)
    if placed and (partitions is not None or replicas is not None):
        raise click.UsageError("--replica-assignment says how many partitions and replicas there are; drop -p and -r")
    for name in names:
        try:
            created = create_topic(
                cluster,
                name,
                partitions=partitions or -1,
                replication_factor=replicas or -1,
                assignment=placed,
                configs=settings,
                validate_only=dry_run,
            )
        except KafkaError as error:
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
                note(f"topic {name} exists")
                continue
            raise
        if not dry_run:
            wait_for_topic(cluster, name)
        count = created.num_partitions
        done = "would create" if dry_run else "created"
        click.echo(f"{done} topic {name}" + (f" with {count} {plural('partition', count)}" if count > 0 else ""))
        copies = created.replication_factor
        if replicas is not None and 0 < copies < replicas:
            note(f"topic {name} has {copies} {plural('replica', copies)}, not {replicas}: there are no more brokers")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@change_options
@regex_option
@cluster_options
def alter(
    names: tuple[str, ...],
    set_: tuple[str, ...],
    delete: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    dry_run: bool,
    regex: bool,
    cluster: Cluster,
) -> None:
    """Change the configuration of topics.

    \b
    barnabas topic alter orders --set retention.ms=1d
    barnabas topic alter 'ord*' --delete retention.ms
    barnabas topic alter orders --append cleanup.policy=compact
    """
    changes = changes_from(set_, delete, append, subtract)
    for name in _existing(cluster, names, regex=regex):
        alter_resource(cluster, "topic", name, changes, dry_run=dry_run)
        show_changes("topic", name, changes, dry_run=dry_run)


@click.command("add-partitions")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-n", "--num", "number", type=click.IntRange(min=1), help="Add this number of partitions.")
@click.option("--total", type=click.IntRange(min=1), help="Grow to this number of partitions.")
@click.option("--dry-run", is_flag=True, help="Only have the broker check the change.")
@regex_option
@cluster_options
def add_partitions(
    names: tuple[str, ...], number: int | None, total: int | None, dry_run: bool, regex: bool, cluster: Cluster
) -> None:
    """Add partitions to topics; partitions cannot be removed.

    Records that exist stay where they are, so a key's new records may be in another partition than its old ones.
    """
    if (number is None) == (total is None):
        raise click.UsageError("say either how many to add (-n) or how many there shall be (--total)")
    for topic in admin.describe_topics(cluster, _existing(cluster, names, regex=regex)):
        name, before = topic.name or "", len(topic.partitions)
        after = total if total is not None else before + (number or 0)
        admin.add_partitions(cluster, {name: after}, validate_only=dry_run)
        would = "would have" if dry_run else "has"
        click.echo(f"topic {name} {would} {after} {plural('partition', after)}, {after - before} more than before")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@regex_option
@yes_option
@cluster_options
def delete(names: tuple[str, ...], regex: bool, yes: bool, cluster: Cluster) -> None:
    """Delete topics with all their records.

    It asks first; -y does not, and is needed without a terminal. It names the groups that are reading the topics:
    their consumers may create them again.
    """
    existing = _existing(cluster, names, regex=regex)
    topics = describe_topics(cluster, existing)  # reports a wrong name before anything is deleted
    internal = any(topic.is_internal for topic in topics)
    why = "this deletes all records of"
    if have_patterns(names, regex=regex):
        why = "the pattern means"
    elif internal:
        why = "the brokers keep their own state in"
    rest = " with all records" + (", which are the brokers' own" if internal else "")
    for name, groups in groups_reading(cluster, existing).items():
        note(f"topic {name} is being read by {plural('group', len(groups))} {', '.join(groups)}")
    confirm("Delete", "topic", existing, yes=yes, why=why, rest=rest)
    for name in existing:
        delete_topics(cluster, [name])
        click.echo(f"deleted topic {name}")


def _assignment(text: str) -> list[list[int]]:
    """The brokers of each partition of `1:2,2:1`."""
    partitions = [part.split(":") for part in text.split(",")]
    if not all(number.isascii() and number.isdigit() for brokers in partitions for number in brokers):
        raise click.BadParameter(
            f"must be ids of brokers, as in 1:2,2:1, not {text!r}", param_hint="--replica-assignment"
        )
    return [[int(number) for number in brokers] for brokers in partitions]


def _existing(cluster: Cluster, names: tuple[str, ...], *, regex: bool) -> list[str]:
    """The topics that are named or match; patterns do not match internal topics."""

    def known() -> list[str]:
        return [topic.name or "" for topic in list_topics(cluster) if not topic.is_internal]

    return select(names, known, regex=regex, kind="topic")
