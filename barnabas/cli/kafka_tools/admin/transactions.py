"""kafka-transactions: list, describe and abort transactions, find those that hang."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from time import time_ns

from barnabas.cli.kafka_tools.common import Failed
from barnabas.cli.kafka_tools.subcommands import ToolParser, add_server, connect, print_table
from barnabas.client.admin.topics import all_topics
from barnabas.client.admin.transactions import (
    OpenTransaction,
    abort_in_partition,
    describe_producers,
    describe_transaction,
    fence_producer,
    hanging_transactions,
    list_transactions,
)
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.offsets import TopicPartition
from barnabas.wire.messages.transactions import ProducerState

NAME = "kafka-transactions"
MINUTE_MS = 60_000


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ToolParser(prog=NAME, description="This tool is used to analyze the transactional state of producers.")
    add_server(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    listed = commands.add_parser("list", help="List transactions.")
    listed.add_argument("--duration-filter", type=int, metavar="MS", help="Only transactions that are open for longer.")
    listed.add_argument("--transactional-id-pattern", metavar="REGEX", help="Only ids that match.")
    described = commands.add_parser("describe", help="Describe the transaction of a transactional id.")
    described.add_argument("--transactional-id", required=True, metavar="ID", help="The transactional id.")
    producers = commands.add_parser("describe-producers", help="Describe the producers of a partition.")
    producers.add_argument("--broker-id", type=int, metavar="ID", help="Ask this broker; Barnabas is the only one.")
    _add_partition(producers)
    hanging = commands.add_parser("find-hanging", help="Find transactions that their coordinator does not know.")
    hanging.add_argument("--broker-id", type=int, metavar="ID", help="All partitions of this broker.")
    hanging.add_argument(
        "--max-transaction-timeout", type=int, default=15, metavar="MINUTES", help="The longest transaction timeout."
    )
    _add_partition(hanging, is_required=False)
    abort = commands.add_parser("abort", help="Abort a transaction that hangs in a partition.")
    _add_partition(abort)
    abort.add_argument("--start-offset", type=int, metavar="OFFSET", help="Its first offset.")
    for option in ("--producer-id", "--producer-epoch", "--coordinator-epoch"):
        abort.add_argument(option, type=int, metavar="NUMBER", help="Instead of --start-offset, all three.")
    terminate = commands.add_parser("forceTerminateTransaction", help="Fence a producer and abort its transaction.")
    terminate.add_argument("--transactionalId", required=True, metavar="ID", help="The transactional id.")
    return parser


def _add_partition(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    parser.add_argument("--topic", required=is_required, metavar="TOPIC", help="The topic.")
    parser.add_argument("--partition", type=int, required=is_required, metavar="NUMBER", help="The partition.")


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    args = make_parser().parse_args(list(arguments))
    commands = {
        "list": _list,
        "describe": _describe,
        "describe-producers": _describe_producers,
        "find-hanging": _find_hanging,
        "abort": _abort,
        "forceTerminateTransaction": _terminate,
    }
    try:
        with connect(args) as cluster:
            commands[args.command](cluster, args)
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _list(cluster: Cluster, args: argparse.Namespace) -> None:
    pattern = re.compile(args.transactional_id_pattern or ".*")
    rows = [
        (transaction.transactional_id, transaction.coordinator, transaction.producer_id, transaction.state)
        for transaction in list_transactions(cluster, older_than_ms=args.duration_filter)
        if pattern.fullmatch(transaction.transactional_id)
    ]
    print_table(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def _describe(cluster: Cluster, args: argparse.Namespace) -> None:
    name = args.transactional_id
    try:
        coordinator, transaction = describe_transaction(cluster, name)
    except NotFound:
        reason = f"DescribeTransactions request for transactionalId `{name}` failed because the ID could not be found"
        what = f"Failed to describe transaction state of transactional-id `{name}`"
        raise Failed(f"{what}: {reason}. Enable debug logging for additional detail.") from None
    start = transaction.transaction_start_time_ms
    partitions = ",".join(f"{topic.topic}-{index}" for topic in transaction.topics for index in topic.partitions)
    times = ("None", "None") if start < 0 else (start, time_ns() // 1_000_000 - start)
    head = ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"]
    head += ["TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"]
    row = (coordinator, name, transaction.producer_id, transaction.producer_epoch, transaction.transaction_state)
    print_table(head, [(*row, transaction.transaction_timeout_ms, *times, partitions)])


def _producers(cluster: Cluster, args: argparse.Namespace) -> list[ProducerState]:
    where = (args.topic, args.partition)
    _check_partition(cluster, where)
    return describe_producers(cluster, [where])[where]


def _check_partition(cluster: Cluster, where: TopicPartition) -> None:
    count = len(cluster.find_topic(where[0]).leaders)
    if not 0 <= where[1] < count:
        raise Failed(f"topic {where[0]} has {count} partitions, and {where[1]} is not one of them")


def _describe_producers(cluster: Cluster, args: argparse.Namespace) -> None:
    head = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp")
    rows = []
    for producer in _producers(cluster, args):
        start = producer.current_txn_start_offset
        row = (
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.last_sequence,
            producer.last_timestamp,
        )
        rows.append((*row, "None" if start < 0 else start))
    print_table((*head, "CurrentTransactionStartOffset"), rows)


def _find_hanging(cluster: Cluster, args: argparse.Namespace) -> None:
    if args.topic is None and args.broker_id is None:
        what = "The `find-hanging` command requires either --topic or --broker-id"
        raise Failed(f"{what} to limit the scope of the search")
    if args.partition is not None and args.topic is None:
        raise Failed("The --partition argument requires --topic to be provided")
    partitions = [
        (topic.name or "", partition.partition_index)
        for topic in all_topics(cluster)
        for partition in topic.partitions
        if args.topic in {None, topic.name}
        and args.partition in {None, partition.partition_index}
        and (args.broker_id is None or args.broker_id in partition.replica_nodes)
    ]
    now_ms = time_ns() // 1_000_000
    idle_since = now_ms - args.max_transaction_timeout * MINUTE_MS
    hanging = hanging_transactions(cluster, partitions, idle_since_ms=idle_since) if partitions else []
    head = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp")
    print_table((*head, "Duration(min)"), [_hanging_row(transaction, now_ms) for transaction in hanging])


def _hanging_row(transaction: OpenTransaction, now_ms: int) -> tuple[object, ...]:
    state = transaction.producer
    places = (
        transaction.topic,
        transaction.partition,
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
    )
    minutes = (now_ms - state.last_timestamp) // MINUTE_MS
    return (*places, state.current_txn_start_offset, state.last_timestamp, minutes)


def _abort(cluster: Cluster, args: argparse.Namespace) -> None:
    abort_in_partition(cluster, args.topic, args.partition, _to_abort(cluster, args))


def _to_abort(cluster: Cluster, args: argparse.Namespace) -> ProducerState:
    """The producer that `abort` names, by the start of its transaction or by its numbers."""
    if args.start_offset is None and args.producer_id is None:
        ways = "--start-offset (for brokers on 3.0 or above) or with --producer-id, --producer-epoch"
        raise Failed(
            f"The transaction to abort must be identified either with {ways}, and --coordinator-epoch "
            "(for older brokers)"
        )
    if args.start_offset is not None:
        for producer in _producers(cluster, args):
            if producer.current_txn_start_offset == args.start_offset:
                return producer
        where = f"offset {args.start_offset} on partition {args.topic}-{args.partition}"
        raise Failed(f"Could not find any open transactions starting at {where}")
    for option in ("producer_epoch", "coordinator_epoch"):
        if getattr(args, option) is None:
            raise Failed(f"Missing required argument --{option.replace('_', '-')}")
    _check_partition(cluster, (args.topic, args.partition))
    return ProducerState(
        producer_id=args.producer_id,
        producer_epoch=args.producer_epoch,
        coordinator_epoch=args.coordinator_epoch,
    )


def _terminate(cluster: Cluster, args: argparse.Namespace) -> None:
    fence_producer(cluster, args.transactionalId)
