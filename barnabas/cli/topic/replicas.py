"""`barnabas topic reassign|elect-leaders`: which brokers have the partitions of topics, and which of them lead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic, sleep

import click

from barnabas.cli.options.parameters import (
    bootstrap_option,
    cluster_options,
    connect,
    output_option,
    timeout_option,
    yes_option,
)
from barnabas.cli.options.partitions import named_partitions
from barnabas.cli.options.patterns import confirm
from barnabas.client.admin import reassignments
from barnabas.client.admin.reassignments import Partition, Reassignment, ongoing
from barnabas.client.admin.topics import describe_topics, list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import TimedOut
from barnabas.terminal.notes import note
from barnabas.terminal.tables import show_rows
from barnabas.wire.errors import KafkaError

POLL_S = 0.2


@click.command()
@click.argument("which", nargs=-1, metavar="[TOPIC[:PARTITION,...]]...")
@click.option("-r", "--replicas", metavar="NODE,...", help="The brokers that shall have the partitions, leader first.")
@click.option("--cancel", is_flag=True, help="Cancel reassignments: the replicas stay where they were.")
@click.option("--wait", is_flag=True, help="Return when the new replicas have the records.")
@bootstrap_option
@timeout_option
@output_option
def reassign(
    which: tuple[str, ...],
    replicas: str | None,
    cancel: bool,
    wait: bool,
    bootstrap: str,
    timeout_s: float,
    output: str,
) -> None:
    """Move partitions to other brokers, cancel reassignments, or show them.

    New replicas get the records first; then the old ones are removed.
    'barnabas cluster rebalance' makes a plan for all partitions.

    \b
    barnabas topic reassign orders:0 --replicas 2,3,1
    barnabas topic reassign orders --cancel
    barnabas topic reassign
    """
    if cancel and replicas is not None:
        raise click.UsageError("say either which brokers (--replicas) or --cancel")
    if (cancel or replicas is not None) and not which:
        raise click.UsageError("name the topics or partitions to move")
    brokers = None if replicas is None else _brokers(replicas)
    with connect(bootstrap, timeout_s) as cluster:
        if brokers is None and not cancel:
            _show(cluster, which, output)
            return
        partitions = _partitions(cluster, which)
        if cancel:
            partitions = [partition for partition in partitions if partition in reassignments.ongoing(cluster)]
            if not partitions:
                note("nothing to cancel")
                return
        reassignments.reassign(cluster, dict.fromkeys(partitions, brokers))
        if wait and not cancel:
            _wait(cluster, partitions, timeout_s)
        done = "cancelled" if cancel else "reassigned" if wait else "reassigning"
        for name, index in partitions:
            click.echo(f"{done} {name}-{index}" + (f" to {','.join(map(str, brokers))}" if brokers else ""))


@click.command("elect-leaders")
@click.argument("which", nargs=-1, metavar="[TOPIC[:PARTITION,...]]...")
@click.option("--unclean", is_flag=True, help="Elect a replica that is not in sync where no other is left.")
@yes_option
@cluster_options
def elect_leaders(which: tuple[str, ...], unclean: bool, yes: bool, cluster: Cluster) -> None:
    """Make the preferred replicas leaders again, the first of each partition; of all partitions if none is named.

    An unclean election loses the records that the new leader does not have. It asks first.

    \b
    barnabas topic elect-leaders
    barnabas topic elect-leaders orders:0 --unclean
    """
    if unclean and not which:
        raise click.UsageError("name the topics or partitions for an unclean election")
    partitions = _partitions(cluster, which) if which else None
    if unclean:
        names = [f"{name}-{index}" for name, index in partitions or ()]
        confirm(
            "Elect an unclean leader of",
            "partition",
            names,
            yes=yes,
            why="records may be lost in",
            rest=", which may lose records",
        )
    kind = reassignments.UNCLEAN if unclean else reassignments.PREFERRED
    before = _leaders(cluster, partitions)
    failed = reassignments.elect_leaders(cluster, partitions, kind)
    changed = _changed(cluster, partitions, before)
    for (name, index), leader in sorted(changed.items()):
        click.echo(f"broker {leader} leads {name}-{index}")
    if not changed and not failed:
        note("every partition has its leader already")
    for (name, index), error in sorted(failed.items()):
        note(f"no leader elected for {name}-{index}: {error.name}")
    if failed:
        raise KafkaError(next(iter(failed.values())), f"{len(failed)} of the elections failed")


def _brokers(text: str) -> list[int]:
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise click.BadParameter(f"must be the ids of brokers, as in 1,2,3, not {text!r}", param_hint="--replicas")
    brokers = [int(number) for number in numbers]
    if len(set(brokers)) < len(brokers):
        raise click.BadParameter(f"names a broker twice: {text}", param_hint="--replicas")
    return brokers


def _partitions(cluster: Cluster, texts: Sequence[str]) -> list[Partition]:
    return named_partitions(cluster, texts, "TOPIC")


def _show(cluster: Cluster, which: Sequence[str], output: str) -> None:
    """A row for each reassignment that is going on."""
    reassignments = ongoing(cluster)
    if which:
        selected = set(_partitions(cluster, which))
        reassignments = {partition: state for partition, state in reassignments.items() if partition in selected}
    columns = ("topic", "partition", "replicas", "adding", "removing")
    rows = [_row(partition, state) for partition, state in sorted(reassignments.items())]
    show_rows(rows, output, columns=columns, empty="no partition is being reassigned")


def _row(partition: Partition, state: Reassignment) -> dict[str, object]:
    return {
        "topic": partition[0],
        "partition": partition[1],
        "replicas": list(state.replicas),
        "adding": list(state.adding),
        "removing": list(state.removing),
    }


def _wait(cluster: Cluster, partitions: Iterable[Partition], timeout_s: float) -> None:
    """Wait until none of the partitions is being reassigned. `TimedOut`."""
    end = monotonic() + timeout_s
    remaining = set(partitions)
    while remaining := remaining & ongoing(cluster).keys():
        if monotonic() > end:
            raise TimedOut(f"{len(remaining)} partitions are still being reassigned after {timeout_s:g} s; it goes on")
        sleep(POLL_S)


def _leaders(cluster: Cluster, partitions: Sequence[Partition] | None) -> dict[Partition, int]:
    names = None if partitions is None else list(dict.fromkeys(name for name, _ in partitions))
    topics = list_topics(cluster) if names is None else describe_topics(cluster, names)
    leaders = {
        (topic.name or "", partition.partition_index): partition.leader_id
        for topic in topics
        for partition in topic.partitions
    }
    return leaders if partitions is None else {partition: leaders[partition] for partition in partitions}


def _changed(
    cluster: Cluster, partitions: Sequence[Partition] | None, before: dict[Partition, int]
) -> dict[Partition, int]:
    """The partitions with another leader; brokers learn of an election a moment after its answer."""
    sleep(POLL_S)
    after = _leaders(cluster, partitions)
    return {partition: leader for partition, leader in after.items() if leader >= 0 and leader != before.get(partition)}
