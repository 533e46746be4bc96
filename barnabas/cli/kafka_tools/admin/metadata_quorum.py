"""kafka-metadata-quorum: the state of the controllers' quorum and of the replicas of its log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from barnabas.cli.kafka_tools.common import Failed
from barnabas.cli.kafka_tools.subcommands import ToolParser, add_server, connect, print_table
from barnabas.client.admin.cluster import describe_cluster, describe_quorum
from barnabas.client.cluster import Cluster
from barnabas.wire.messages.raft import DescribeQuorumResponse, DescribeQuorumResponseReplicaState
from barnabas.wire.types import ZERO_UUID, uuid_to_text

NAME = "kafka-metadata-quorum"
UNKNOWN = -1


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ToolParser(prog=NAME, description="This tool describes kraft metadata quorum status.")
    add_server(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    describe = commands.add_parser("describe", help="Describe the metadata quorum info.")
    describe.add_argument("--status", action="store_true", help="A short summary of the quorum.")
    describe.add_argument("--replication", action="store_true", help="Detailed information about the replication.")
    describe.add_argument("--human-readable", action="store_true", help="Times as the distance from now.")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    args = make_parser().parse_args(list(arguments))
    try:
        _describe(args)
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _describe(args: argparse.Namespace) -> None:
    if args.status and args.replication:
        raise Failed("Only one of --status or --replication should be specified with describe sub-command")
    if not (args.status or args.replication):
        raise Failed("One of --status or --replication must be specified with describe sub-command")
    if args.status and args.human_readable:
        raise Failed("The option --human-readable is only supported along with --replication")
    with connect(args) as cluster:
        response = describe_quorum(cluster)
        if args.replication:
            _print_replication(response, is_readable=args.human_readable)
        else:
            _print_status(cluster, response)


def _print_status(cluster: Cluster, response: DescribeQuorumResponse) -> None:
    quorum = response.topics[0].partitions[0]
    leader = next((voter for voter in quorum.current_voters if voter.replica_id == quorum.leader_id), None)
    followers = [voter for voter in quorum.current_voters if voter.replica_id != quorum.leader_id]
    lag = lag_ms = 0
    if leader is not None and followers:
        lag = max(leader.log_end_offset - follower.log_end_offset for follower in followers)
        caught_up = min(follower.last_caught_up_timestamp for follower in followers)
        known = caught_up != UNKNOWN and leader.last_caught_up_timestamp != UNKNOWN
        lag_ms = leader.last_caught_up_timestamp - caught_up if known else UNKNOWN
    endpoints = {node.node_id: [f"{e.name}://{e.host}:{e.port}" for e in node.listeners] for node in response.nodes}
    lines = {
        "ClusterId": describe_cluster(cluster, with_fenced=False).cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": lag,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": f"[{', '.join(_node(voter, endpoints) for voter in quorum.current_voters)}]",
        "CurrentObservers": f"[{', '.join(_node(observer, {}) for observer in quorum.observers)}]",
    }
    for name, value in lines.items():
        print(f"{name + ':':<24}{value}")


def _node(state: DescribeQuorumResponseReplicaState, endpoints: dict[int, list[str]]) -> str:
    text = f'{{"id": {state.replica_id}, "directoryId": {_directory(state, null="null", quote=True)}'
    if endpoints.get(state.replica_id):
        listed = ", ".join(f'"{address}"' for address in endpoints[state.replica_id])
        text += f', "endpoints": [{listed}]'
    return text + "}"


def _directory(state: DescribeQuorumResponseReplicaState, *, null: str, quote: bool) -> str:
    if state.replica_directory_id == ZERO_UUID:
        return null
    text = uuid_to_text(state.replica_directory_id)
    return f'"{text}"' if quote else text


def _print_replication(response: DescribeQuorumResponse, *, is_readable: bool) -> None:
    quorum = response.topics[0].partitions[0]
    leader = next((voter for voter in quorum.current_voters if voter.replica_id == quorum.leader_id), None)
    end = UNKNOWN if leader is None else leader.log_end_offset
    followers = [voter for voter in quorum.current_voters if voter is not leader]
    states = [*(() if leader is None else ((leader, "Leader"),)), *((follower, "Follower") for follower in followers)]
    states += [(observer, "Observer") for observer in quorum.observers]
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    rows = [
        (
            state.replica_id,
            _directory(state, null="AAAAAAAAAAAAAAAAAAAAAA", quote=False),
            state.log_end_offset,
            end - state.log_end_offset,
            _time(state.last_fetch_timestamp, now_ms, is_readable=is_readable),
            _time(state.last_caught_up_timestamp, now_ms, is_readable=is_readable),
            status,
        )
        for state, status in states
    ]
    head = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
    print_table(head, rows)


def _time(timestamp_ms: int, now_ms: int, *, is_readable: bool) -> str:
    if timestamp_ms == UNKNOWN:
        return str(UNKNOWN)
    return f"{now_ms - timestamp_ms} ms ago" if is_readable else str(timestamp_ms)
