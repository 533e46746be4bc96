"""`barnabas txn`: transactions and those that hang (KIP-664)."""

from __future__ import annotations

from time import time_ns

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.failure import FAILED
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import cluster_options, listing_options, output_option, yes_option
from barnabas.cli.options.partitions import named_partitions, split_partitions
from barnabas.cli.options.patterns import ask_or_refuse, matching
from barnabas.client.admin.topics import list_topics
from barnabas.client.admin.transactions import (
    OpenTransaction,
    abort_in_partition,
    describe_transaction,
    fence_producer,
    hanging_producer,
    hanging_transactions,
    list_transactions,
)
from barnabas.client.cluster import Cluster
from barnabas.terminal.plural import plural
from barnabas.terminal.tables import is_document, show, show_fields, show_rows, spaced
from barnabas.terminal.times import iso_time
from barnabas.wire.messages.transactions import DescribeTransactionsResponseTransactionState

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")
MAX_TIMEOUT_S = 15 * 60.0
"""The default of the broker's transaction.max.timeout.ms."""


@click.group(cls=Group)
def txn() -> None:
    """List, describe and abort transactions, and find hanging ones."""


@txn.command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only in this state.")
@click.option("--producer-id", "producer_ids", multiple=True, type=int, help="Only of this producer.")
@click.option(
    "--older-than",
    "older_than_s",
    type=Duration(),
    metavar="TIME",
    help="Only transactions that are open for longer (15m).",
)
@listing_options
def list_(
    patterns: tuple[str, ...],
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    older_than_s: float | None,
    regex: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """List transactional ids with their coordinator and state."""
    transactions = {
        transaction.transactional_id: transaction
        for transaction in list_transactions(
            cluster,
            states=states,
            producer_ids=producer_ids,
            older_than_ms=None if older_than_s is None else round(older_than_s * 1000),
        )
    }
    rows = [transactions[name]._asdict() for name in matching(patterns, transactions, regex=regex)]
    show_rows(rows, output, empty="no transactions")


@txn.command()
@click.argument("names", nargs=-1, required=True, metavar="TRANSACTIONAL-ID...")
@cluster_options
@output_option
def describe(names: tuple[str, ...], cluster: Cluster, output: str) -> None:
    """Show the producer, state, age and partitions of transactional ids."""
    described = [_described(*describe_transaction(cluster, name)) for name in names]
    if is_document(output):
        show(described, output)
        return
    for transaction in spaced(described):
        show_fields(transaction, output)


def _described(coordinator: int, state: DescribeTransactionsResponseTransactionState) -> dict[str, object]:
    started = state.transaction_start_time_ms
    return {
        "transactional_id": state.transactional_id,
        "state": state.transaction_state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "coordinator": coordinator,
        "timeout_ms": state.transaction_timeout_ms,
        "started": iso_time(started),
        "open_ms": max(0, time_ns() // 1_000_000 - started) if started >= 0 else None,
        "partitions": [f"{topic.topic}-{index}" for topic in state.topics for index in sorted(topic.partitions)],
    }


@txn.command()
@click.argument("name", required=False, metavar="[TRANSACTIONAL-ID]")
@click.option("--partition", metavar="TOPIC:PARTITION", help="Abort a transaction that hangs in this partition.")
@click.option("--start-offset", type=click.IntRange(min=0), help="The offset at which it began there.")
@yes_option
@cluster_options
def abort(name: str | None, partition: str | None, start_offset: int | None, yes: bool, cluster: Cluster) -> None:
    """Abort the open transaction of a transactional id and fence its producer, or abort a hanging transaction.

    \b
    barnabas txn abort billing
    barnabas txn abort --partition orders:0 --start-offset 42     # as 'txn find-hanging' lists it

    It asks first. A transaction that its coordinator knows must be aborted by its id: a marker in one partition
    would leave it open in the others.
    """
    if (name is None) == (partition is None) or (partition is None) != (start_offset is None):
        raise click.UsageError("name a TRANSACTIONAL-ID, or --partition and --start-offset of one that hangs")
    if name is not None:
        _abort_of_id(cluster, name, yes=yes)
    else:
        _abort_in_partition(cluster, partition or "", start_offset or 0, yes=yes)


def _abort_of_id(cluster: Cluster, name: str, *, yes: bool) -> None:
    _, state = describe_transaction(cluster, name)
    who = f"the producer of {name} ({state.transaction_state})"
    ask_or_refuse(f"Fence {who} and abort its transaction?", f"this fences {who} and aborts its transaction", yes=yes)
    fence_producer(cluster, name)
    was_open = state.transaction_state == "Ongoing"
    done = "aborted the transaction of" if was_open else "there was no open transaction; fenced the producer of"
    click.echo(f"{done} {name}")


def _abort_in_partition(cluster: Cluster, text: str, start_offset: int, *, yes: bool) -> None:
    topic, indexes = split_partitions(text, "--partition")
    if indexes is None or len(indexes) != 1:
        raise click.BadParameter(f"must be TOPIC:PARTITION, not {text!r}", param_hint="--partition")
    (which,) = named_partitions(cluster, (text,), "--partition")
    producer = hanging_producer(cluster, which, start_offset)
    what = f"the transaction of producer {producer.producer_id} in {topic}-{which[1]}"
    ask_or_refuse(f"Abort {what}?", f"this aborts {what}", yes=yes)
    abort_in_partition(cluster, *which, producer)
    click.echo(f"aborted {what}")


@txn.command("find-hanging")
@click.argument("names", nargs=-1, metavar="[TOPIC[:PARTITION,...]]...")
@click.option(
    "--max-timeout",
    "max_timeout_s",
    type=Duration(may_be_zero=True),
    default=MAX_TIMEOUT_S,
    metavar="TIME",
    help="Leave out transactions with a record in this time: the brokers' transaction.max.timeout.ms.  [default: 15m]",
)
@cluster_options
@output_option
def find_hanging(names: tuple[str, ...], max_timeout_s: float, cluster: Cluster, output: str) -> int:
    """Find transactions that partitions have open and their coordinator does not know; exit 1 if there are any.

    They hold back readers with read_committed for ever; 'txn abort --partition' ends them.
    """
    now = time_ns() // 1_000_000
    partitions = (
        named_partitions(cluster, names, "TOPIC")
        if names
        else [
            (topic.name or "", part.partition_index)
            for topic in list_topics(cluster)
            for part in topic.partitions
            if part.leader_id >= 0
        ]
    )
    hanging = hanging_transactions(cluster, partitions, idle_since_ms=now - round(max_timeout_s * 1000))
    rows = [_hanging_row(transaction, now) for transaction in hanging]
    columns = ("topic", "partition", "producer_id", "start_offset", "idle_s")
    empty = f"no transaction hangs in {len(partitions)} {plural('partition', len(partitions))}"
    show_rows(rows, output, columns=columns, empty=empty)
    return FAILED if rows else 0


def _hanging_row(transaction: OpenTransaction, now: int) -> dict[str, object]:
    producer = transaction.producer
    return {
        "topic": transaction.topic,
        "partition": transaction.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.current_txn_start_offset,
        "last_time": iso_time(producer.last_timestamp),
        "idle_s": (now - producer.last_timestamp) // 1000,
        "transactional_id": transaction.transactional_id,
    }
