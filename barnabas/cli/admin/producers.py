"""`barnabas producers`: the idempotent and transactional producers of partitions (DescribeProducers, KIP-664)."""

from __future__ import annotations

import click

from barnabas.cli.options.parameters import cluster_options, output_option
from barnabas.cli.options.partitions import named_partitions
from barnabas.client.admin.transactions import describe_producers
from barnabas.client.cluster import Cluster
from barnabas.terminal.tables import is_document, show_rows, spaced
from barnabas.terminal.times import iso_time


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC[:PARTITION,...]...")
@cluster_options
@output_option
def producers(names: tuple[str, ...], cluster: Cluster, output: str) -> None:
    """Show the idempotent and transactional producers of partitions, and their open transactions.

    \b
    barnabas producers orders:0
    """
    by_partition = describe_producers(cluster, named_partitions(cluster, names, "TOPIC"))
    rows: list[dict[str, object]] = [
        {
            "topic": name,
            "partition": index,
            "producer_id": state.producer_id,
            "epoch": state.producer_epoch,
            "last_sequence": state.last_sequence if state.last_sequence >= 0 else None,
            "last_time": iso_time(state.last_timestamp),
            "coordinator_epoch": state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
            "txn_start": state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
        }
        for (name, index), states in sorted(by_partition.items())
        for state in states
    ]
    columns = ("partition", "producer_id", "epoch", "last_sequence", "txn_start")
    topics = list(dict.fromkeys(str(row["topic"]) for row in rows))
    if is_document(output) or output == "wide" or not rows:
        show_rows(rows, output, empty="these partitions know no idempotent or transactional producer")
        return
    for topic in spaced(topics):
        show_rows([row for row in rows if row["topic"] == topic], output, columns=columns, title=topic)
