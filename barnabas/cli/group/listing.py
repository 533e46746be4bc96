"""`barnabas group list|lag|offsets`."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable

import click

from barnabas.cli.options.parameters import cluster_options, listing_options, output_option
from barnabas.cli.options.patterns import matching, select
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import list_groups
from barnabas.client.groups.lags import lags_of, total_lag
from barnabas.client.groups.views import view_group, view_groups
from barnabas.terminal.suggestion import suggestion
from barnabas.terminal.tables import show_rows

STATES = (
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady", "Dead",
)  # fmt: skip
TYPES = ("classic", "consumer", "share", "streams")


def _known_states(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[str]:  # noqa: ARG001
    """The states, in Kafka's spelling; a broker answers no groups for a state that there is not."""
    known = {state.lower(): state for state in STATES}
    for text in texts:
        if text.lower() not in known:
            raise click.BadParameter(f"no such state: {text}{suggestion(text, STATES)}; there are {', '.join(STATES)}")
    return [known[text.lower()] for text in texts]


@click.command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--type", "types", multiple=True, type=click.Choice(TYPES), help="Only groups of this type.")
@click.option(
    "--state",
    "states",
    multiple=True,
    callback=_known_states,
    metavar="STATE",
    help="Only groups in this state (Stable, Empty ...).",
)
@listing_options
def list_(
    patterns: tuple[str, ...], types: tuple[str, ...], states: list[str], regex: bool, cluster: Cluster, output: str
) -> None:
    """List groups with their state."""
    groups = {group.group_id: group for group in list_groups(cluster, states, types)}
    rows = [
        {
            "group": name,
            "state": groups[name].group_state or None,
            "type": groups[name].group_type or None,
            "protocol": groups[name].protocol_type or None,
        }
        for name in matching(patterns, groups, regex=regex)
    ]
    show_rows(rows, output, empty=f"no group matches {' '.join(patterns)}" if patterns else "no groups")


@click.command()
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@click.option("--lag-over", type=click.IntRange(min=0), metavar="N", help="Only groups with a lag of more than N.")
@listing_options
def lag(names: tuple[str, ...], lag_over: int | None, regex: bool, cluster: Cluster, output: str) -> None:
    """Show a line for each group: its state, members, and the lag of all its partitions together.

    \b
    barnabas group lag                        # all groups
    barnabas group lag readers -o json
    barnabas group lag --lag-over 1000
    """
    existing = existing_groups(cluster, names, regex=regex) if names else [g.group_id for g in list_groups(cluster)]
    rows = []
    for view in view_groups(cluster, existing):
        lags = lags_of(cluster, view)
        rows.append(
            {
                "group": view.group_id,
                "state": view.state,
                "members": len(view.members),
                "topics": len({row.topic for row in lags}),
                "partitions": len(lags),
                "lag": total_lag(lags),
            }
        )
    over = [row for row in rows if lag_over is None or (isinstance(row["lag"], int) and row["lag"] > lag_over)]
    empty = f"no group has a lag of more than {lag_over}" if rows else "no groups"
    show_rows(over, output, columns=("group", "state", "members", "partitions", "lag"), empty=empty)


@click.command()
@click.argument("name", metavar="GROUP")
@click.option("--export", is_flag=True, help="Print CSV that 'group seek --from-file' and Kafka's tool read.")
@cluster_options
@output_option
def offsets(name: str, export: bool, cluster: Cluster, output: str) -> None:
    """Show a group's committed offset in each partition."""
    lags = lags_of(cluster, view_group(cluster, name))
    if export:
        export_offsets((row.topic, row.partition, row.committed) for row in lags if row.committed is not None)
        return
    columns = ("topic", "partition", "committed", "end", "lag")
    show_rows([{key: getattr(row, key) for key in columns} for row in lags], output, empty=f"{name} has no offsets")


def export_offsets(lines: Iterable[tuple[str, int, int]]) -> None:
    """Print `TOPIC,PARTITION,OFFSET` lines, as kafka-consumer-groups.sh --export."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(lines)


def existing_groups(cluster: Cluster, names: tuple[str, ...], *, regex: bool) -> list[str]:
    """The groups that are named or match."""
    return select(names, lambda: [group.group_id for group in list_groups(cluster)], regex=regex, kind="group")
