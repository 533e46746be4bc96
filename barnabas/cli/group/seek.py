"""`barnabas group seek`: set the committed offsets of a group without members, or a share group's start offsets."""

from __future__ import annotations

import click

from barnabas.cli.group.listing import export_offsets
from barnabas.cli.group.targets import goal_from_options, goals_from
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import cluster_options, output_option
from barnabas.client.cluster import Cluster
from barnabas.client.groups.seek import Goal, current_offsets, move_group, resolve_goals
from barnabas.client.groups.views import has_members, is_share_group
from barnabas.terminal.notes import note
from barnabas.terminal.tables import show_rows


@click.command()
@click.argument("name", metavar="GROUP")
@click.option("--to", metavar="WHERE", help="earliest, latest, current, @TIME, an offset, or -N for the last N.")
@click.option("--shift-by", type=int, metavar="N", help="Move by +N or -N offsets.")
@click.option("--to-datetime", metavar="TIME", help="To the first record since a time: 2026-11-21T09:00 (UTC).")
@click.option(
    "--by-duration",
    "duration_s",
    type=Duration(),
    metavar="TIME",
    help="To the first record since that long ago: 2h, PT30M.",
)
@click.option("--to-current", is_flag=True, help="Leave the offsets as they are; for --export.")
@click.option("--to-group", metavar="GROUP", help="To the committed offsets of another group.")
@click.option(
    "--from-file",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="To the offsets of a file with lines TOPIC,PARTITION,OFFSET; '-' is stdin.",
)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITION,...][=WHERE]",
    help="Only these partitions; may be repeated, each with a WHERE of its own.",
)
@click.option("--all-topics", is_flag=True, help="All topics with a committed offset (default).")
@click.option("--dry-run", is_flag=True, help="Show the result without changing anything.")
@click.option("--export", is_flag=True, help="Print the result as CSV for --from-file, and change nothing.")
@cluster_options
@output_option
def seek(
    name: str,
    to: str | None,
    shift_by: int | None,
    to_datetime: str | None,
    duration_s: float | None,
    to_current: bool,
    to_group: str | None,
    path: str | None,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    export: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """Set the offsets of a group without members; of a share group, its start offsets.

    \b
    barnabas group seek readers --to earliest --dry-run
    barnabas group seek readers --shift-by -100 -t orders:0
    barnabas group seek readers -t orders:0=42 -t orders:1=@-1h
    barnabas group seek readers --to current --export > offsets.csv
    barnabas group seek readers --from-file offsets.csv

    An offset outside a partition is moved to its nearest end, which is noted.
    """
    goal = goal_from_options(to, shift_by, to_datetime, duration_s, to_current=to_current)
    _check_usage(goal, to_group, path, topics, all_topics=all_topics)
    is_share = is_share_group(cluster, name)
    before = current_offsets(cluster, name, is_share=is_share)  # seek makes a group that does not exist
    goals = goals_from(cluster, name, before, goal, topics, path, to_group)
    after = resolve_goals(cluster, goals, before, note)
    busy = dry_run and has_members(cluster, name)
    if not (dry_run or export):
        move_group(cluster, name, after, is_share=is_share)
    if export:
        export_offsets((topic, index, offset) for (topic, index), offset in sorted(after.items()))
        return
    rows = [
        {
            "topic": topic,
            "partition": index,
            "before": before.get((topic, index)),
            "after": offset,
            "change": offset - before[topic, index] if (topic, index) in before else None,
        }
        for (topic, index), offset in sorted(after.items())
    ]
    show_rows(rows, output)
    if dry_run:
        result = f"group {name!r} has members; stop them before" if busy else "without --dry-run these offsets are set"
        note(f"dry run: nothing was changed; {result}")


def _check_usage(
    goal: Goal | None, to_group: str | None, path: str | None, topics: tuple[str, ...], *, all_topics: bool
) -> None:
    """One way to say where to; a usage error otherwise."""
    own = bool(topics) and all("=" in text for text in topics)
    ways = [goal, to_group, path]
    if sum(way is not None for way in ways) > 1 or (own and goal is None and (to_group or path)):
        raise click.UsageError("say where to in one way: --to, --shift-by, --from-file, ...")
    if all(way is None for way in ways) and not own:
        raise click.UsageError("say where to: --to WHERE, --shift-by N, --from-file FILE, or -t TOPIC:PARTITION=WHERE")
    if topics and (all_topics or path):
        raise click.UsageError(f"-t selects partitions, {'--all-topics' if all_topics else '--from-file'} does so too")
