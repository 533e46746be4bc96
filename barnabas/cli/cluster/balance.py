"""`barnabas cluster drain|rebalance`: leaders and replicas moved between brokers, with a plan first.

Both look at what is there in the end: what is left is told, with the reason, and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Sized

import click

from barnabas.cli.cluster.directory import cluster_dir_option, known_cluster, optional_cluster_dir_option
from barnabas.cli.failure import FAILED
from barnabas.cli.options.parameters import bootstrap_option, connect, own_timeout_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.supervise import drains
from barnabas.supervise.balance import Partition, is_so
from barnabas.supervise.balance import drain as plan_drain
from barnabas.supervise.balance import rebalance as plan_rebalance
from barnabas.supervise.control import look
from barnabas.supervise.moves import carry_out, current_places, ids, not_drained, not_moved
from barnabas.terminal.notes import note, say
from barnabas.terminal.plural import plural
from barnabas.terminal.tables import show_rows

PLAN_ROWS = 20
"""Rows of a plan, and of what is left, that are shown."""
WAIT = "How long to wait until the partitions have moved."


@click.command()
@click.argument("broker", metavar="NODE", type=int)
@cluster_dir_option
@click.option("--replicas", is_flag=True, help="Move its replicas too, so that it can be removed.")
@click.option("--undo", is_flag=True, help="Move the drained partitions back.")
@own_timeout_option(600.0, WAIT)
def drain(broker: int, data_dir: str, replicas: bool, undo: bool, timeout_s: float) -> int:
    """Move the leaders, and with --replicas the replicas, of a broker to the others, and show the progress.

    The broker stays in the cluster: 'barnabas cluster stop' stops it then. --undo gives everything back. Exit 1 if
    something is left, which is listed.
    """
    known = look(data_dir, note)
    known.node(broker)
    with connect(known.bootstrap, timeout_s) as client:
        current, brokers = current_places(client)
        if undo:
            before = drains.load(data_dir, broker)
            plan = {
                partition: to
                for partition, to in before.items()
                if partition in current and not is_so(current[partition], to)
            }
            unmoved = carry_out(
                client, plan, timeout_s, lambda partition, placed: not_moved(placed, plan.get(partition)), note
            )
        else:
            others = [other for other in brokers if other != broker and other not in drains.drained(known)]
            plan = plan_drain(current, broker, others, replicas=replicas)
            drains.save(data_dir, broker, {partition: list(current[partition].replicas) for partition in plan})
            unmoved = carry_out(client, plan, timeout_s, lambda _, placed: not_drained(placed, broker, replicas), note)
    if unmoved:
        note(f"broker {broker} {'has not everything back' if undo else 'is not drained'}: {_count(unmoved)} left")
        return _show_unmoved(unmoved)
    if undo:
        drains.forget(data_dir, broker)
    say(f"broker {broker} has {_count(plan)} back" if undo else f"broker {broker} is drained of {_count(plan)}")
    return 0


@click.command()
@optional_cluster_dir_option
@bootstrap_option
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@yes_option
@own_timeout_option(600.0, WAIT)
def rebalance(data_dir: str | None, bootstrap: str, dry_run: bool, yes: bool, timeout_s: float) -> int:
    """Spread replicas and leaders evenly over the brokers; the plan is shown first.

    It asks; -y does not, and is needed without a terminal. With the directory of the cluster, drained brokers get none,
    and those they have move to the others. Exit 1 if something is left, which is listed.
    """
    known = known_cluster(data_dir)
    left_out = set() if known is None else drains.drained(known)
    with connect(bootstrap if known is None else known.bootstrap, timeout_s) as client:
        current, brokers = current_places(client)
        plan = plan_rebalance(current, [broker for broker in brokers if broker not in left_out])
        if not plan:
            say("leaders and replicas are spread evenly already")
            return 0
        rows: list[dict[str, object]] = [
            {
                "partition": f"{topic}-{index}",
                "leader": current[topic, index].leader,
                "replicas": ids(current[topic, index].replicas),
                "then_leader": replicas[0],
                "then_replicas": ids(replicas),
            }
            for (topic, index), replicas in plan.items()
        ]
        show_rows(rows[:PLAN_ROWS], "table")
        if len(rows) > PLAN_ROWS:
            note(f"and {len(rows) - PLAN_ROWS} more")
        if dry_run:
            return 0
        ask_or_refuse(f"Move {_count(plan)}?", f"this moves {_count(plan)}", yes=yes)
        unmoved = carry_out(
            client, plan, timeout_s, lambda partition, placed: not_moved(placed, plan.get(partition)), note
        )
    if unmoved:
        note(f"{len(plan) - len(unmoved)} of {_count(plan)} are moved: {_count(unmoved)} left")
        return _show_unmoved(unmoved)
    say(f"{_count(plan)} {'is' if len(plan) == 1 else 'are'} moved")
    return 0


def _count(partitions: Sized) -> str:
    return f"{len(partitions)} {plural('partition', len(partitions))}"


def _show_unmoved(unmoved: dict[Partition, str]) -> int:
    for (topic, index), reason in list(unmoved.items())[:PLAN_ROWS]:
        note(f"{topic}-{index}: {reason}")
    if len(unmoved) > PLAN_ROWS:
        note(f"and {len(unmoved) - PLAN_ROWS} more")
    return FAILED
