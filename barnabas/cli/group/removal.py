"""`barnabas group delete|forget`."""

from __future__ import annotations

import click

from barnabas.cli.group.listing import existing_groups
from barnabas.cli.options.parameters import cluster_options, yes_option
from barnabas.cli.options.partitions import named_partitions
from barnabas.cli.options.patterns import ask_or_refuse, confirm, have_patterns, regex_option
from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_first
from barnabas.client.groups.consumer_groups import delete_group, delete_offsets
from barnabas.client.groups.share_groups import forget_share_topics
from barnabas.client.groups.views import group_types, is_share_group


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@regex_option
@yes_option
@cluster_options
def delete(names: tuple[str, ...], regex: bool, yes: bool, cluster: Cluster) -> None:
    """Delete groups without members, with their offsets.

    It asks first; -y does not, and is needed without a terminal.
    """
    existing = existing_groups(cluster, names, regex=regex)
    group_types(cluster, existing)  # a name that is wrong is reported before anything is deleted
    why = "the pattern means" if have_patterns(names, regex=regex) else "this deletes all offsets of"
    confirm("Delete", "group", existing, yes=yes, why=why, rest=" with all offsets")
    for name in existing:
        delete_group(cluster, name)
        click.echo(f"deleted group {name}")


@click.command()
@click.argument("name", metavar="GROUP")
@click.option("-t", "--topic", "topics", multiple=True, required=True, metavar="TOPIC[:PARTITION,...]")
@yes_option
@cluster_options
def forget(name: str, topics: tuple[str, ...], yes: bool, cluster: Cluster) -> None:
    """Delete a group's offsets of topics that no member reads; a share group must have no members.

    It asks first; -y does not, and is needed without a terminal.
    """
    what = f"the offsets of group {name} of {', '.join(topics)}"
    if is_share_group(cluster, name):
        if any(":" in text for text in topics):
            raise click.UsageError("offsets of a share group are deleted by topic, not by partition")
        ask_or_refuse(f"Delete {what}?", f"this deletes {what}", yes=yes)
        raise_first(forget_share_topics(cluster, name, topics).values())
    else:
        partitions = named_partitions(cluster, topics, "-t")
        ask_or_refuse(f"Delete {what}?", f"this deletes {what}", yes=yes)
        outcome = delete_offsets(cluster, name, partitions)
        raise_first(outcome.values())
    click.echo(f"group {name} has no offsets of {', '.join(topics)} any more")
