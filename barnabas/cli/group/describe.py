"""`barnabas group describe`: lag by partition, members, or state; once, or again and again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import sleep, time_ns

import click

from barnabas.cli.group.listing import existing_groups
from barnabas.cli.options.parameters import listing_options
from barnabas.client.cluster import Cluster
from barnabas.client.groups.lags import Lag, headline, lags_of, total_lag
from barnabas.client.groups.views import GroupView, view_groups
from barnabas.terminal.notes import note, say
from barnabas.terminal.plural import plural
from barnabas.terminal.screen import can_redraw
from barnabas.terminal.tables import is_document, show, show_rows, spaced
from barnabas.terminal.times import iso_time

# --- --watch
CLEAR = "\x1b[H\x1b[2J"


def watch(prepare: Callable[[], Callable[[], None]], interval_s: float, count: int | None, output: str) -> None:
    """Call what `prepare` returns, which prints, every `interval_s` seconds, `count` times or until Ctrl-C.

    `prepare` fetches everything first, so that the screen is cleared only when there is something to print.
    """
    redraws = can_redraw(sys.stdout) and not is_document(output)
    shown = 0
    while True:
        draw = prepare()
        now = iso_time(time_ns() // 1_000_000)
        if redraws:
            sys.stdout.write(CLEAR)
            click.echo(f"every {interval_s:g} s, at {now}; Ctrl-C ends")
        elif not is_document(output):
            click.echo(f"{'' if shown == 0 else chr(10)}at {now}")
        draw()
        sys.stdout.flush()
        shown += 1
        if shown == count:
            return
        sleep(interval_s)


# --- describe

Row = dict[str, object]
Described = tuple["GroupView", list[Lag]]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@click.option("--offsets", "view", flag_value="offsets", default=True, help="Show the lag of each partition (default).")
@click.option("--members", "view", flag_value="members", help="Show the members and their partitions.")
@click.option("--state", "view", flag_value="state", help="Show a line for each group: state, coordinator, assignor.")
@click.option("--lag-over", type=click.IntRange(min=0), metavar="N", help="Only partitions with a lag of more than N.")
@click.option("-w", "--watch", "watches", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    metavar="SECONDS",
    show_default=True,
    help="Time between two rounds of --watch.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End --watch after N rounds.")
@listing_options
def describe(
    names: tuple[str, ...],
    view: str,
    lag_over: int | None,
    watches: bool,
    interval: float,
    count: int | None,
    regex: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """Show the lag and the members of each partition.

    \b
    barnabas group describe readers --watch
    barnabas group describe 'app-*' --lag-over 1000
    """
    if lag_over is not None and view != "offsets":
        raise click.UsageError("--lag-over selects partitions, which --members and --state do not show")

    def prepare() -> Callable[[], None]:
        existing = existing_groups(cluster, names, regex=regex)
        groups = list(view_groups(cluster, existing))
        if view == "state":
            return partial(show_rows, _states(cluster, groups), output, columns=STATE_COLUMNS)
        if view == "members":
            return partial(_show_members, groups, output)
        return partial(_show_lags, [(group, lags_of(cluster, group)) for group in groups], output, lag_over)

    if watches or count is not None:
        watch(prepare, interval, count, output)
    else:
        prepare()()


def _show_lags(described: list[Described], output: str, lag_over: int | None) -> None:
    if is_document(output):
        show([_as_document(group, _over(lags, lag_over)) for group, lags in described], output)
        return
    for group, lags in spaced(described):
        say(headline(group, lags))
        rows = [row._asdict() for row in _over(lags, lag_over)]
        if rows:
            show_rows(rows, output, columns=("topic", "partition", "committed", "end", "lag", "client"))
        elif lags and lag_over is not None:
            note(f"no partition has a lag of more than {lag_over}")


def _over(lags: list[Lag], lag_over: int | None) -> list[Lag]:
    return [row for row in lags if lag_over is None or (row.lag or 0) > lag_over]


def _as_document(view: GroupView, lags: list[Lag]) -> Row:
    return {
        "group": view.group_id,
        "type": view.group_type,
        "state": view.state,
        "protocol_type": view.protocol_type,
        "assignor": view.assignor,
        "total_lag": total_lag(lags),
        "members": [
            {
                "member": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.client_host,
            }
            for member in view.members
        ],
        "partitions": [row._asdict() for row in lags],
    }


def _show_members(groups: list[GroupView], output: str) -> None:
    rows: list[Row] = [
        {
            "group": group.group_id,
            "client": member.client_id,
            "host": member.client_host,
            "partitions": len(member.partitions),
            "assigned": _assigned(member.partitions),
            "member": member.member_id,
            "instance": member.instance_id,
        }
        for group in groups
        for member in group.members
    ]
    columns = ("client", "host", "partitions", "assigned")
    if is_document(output) or output == "wide":
        show_rows(rows, output, empty="no members")
        return
    for group in spaced(groups):
        own = [row for row in rows if row["group"] == group.group_id]
        title = f"group {group.group_id}: {group.state}, {len(own)} {plural('member', len(own))}"
        if own:
            show_rows(own, output, columns=columns, title=title)
        else:
            say(title)


def _assigned(partitions: list[tuple[str, int]]) -> list[str]:
    """`orders:0-3`, `orders:5` for the partitions of a member."""
    texts: list[str] = []
    for topic in sorted({name for name, _ in partitions}):
        indexes = sorted(index for name, index in partitions if name == topic)
        first = last = indexes[0]
        for index in [*indexes[1:], -1]:
            if index == last + 1:
                last = index
                continue
            texts.append(f"{topic}:{first}" if first == last else f"{topic}:{first}-{last}")
            first = last = index
    return texts


STATE_COLUMNS = ("group", "type", "state", "coordinator", "assignor", "members")


def _states(cluster: Cluster, groups: list[GroupView]) -> list[Row]:
    return [
        {
            "group": group.group_id,
            "type": group.group_type,
            "state": group.state,
            "coordinator": cluster.retry(partial(cluster.coordinator_id, group.group_id)),
            "assignor": group.assignor or None,
            "members": len(group.members),
            "protocol": group.protocol_type or None,
        }
        for group in groups
    ]
