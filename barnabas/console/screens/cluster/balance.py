"""Drain a broker, spread replicas and leaders evenly: the plan first, then its progress as a job."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from barnabas.client.cluster import Cluster
from barnabas.console.console import Call
from barnabas.console.failures import Refused
from barnabas.console.jobs import Progress
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.cluster.brokers import nodes_of
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.supervise import balance, drains
from barnabas.supervise.balance import Assignment, Impossible, Partition, Placed
from barnabas.supervise.moves import carry_out, current_places, not_drained, not_moved

TIMEOUT_S = 3600.0
"""How long a job follows the moves of its plan, seconds."""
NAMED_MAX = 3
COLUMNS = ("topic", "partition")


@dataclass(frozen=True, kw_only=True)
class PlanQuery(TableQuery):
    """Which plan: of a drained broker, or (none) of an even spread."""

    broker: int | None = None
    replicas: bool = False
    """Of a drain: its replicas too, not only its leaderships."""


@dataclass(frozen=True)
class PlannedMove:
    """What a partition gets."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    then_leader: int
    then_replicas: list[int]


@dataclass(frozen=True)
class Plan:
    """What would be moved."""

    broker: int | None
    replicas: bool
    moves: Page[PlannedMove]
    copied: int
    """Replicas whose records are copied to another broker."""


@resource("/cluster/plan", template="cluster/plan.html", summary="What a rebalance or a drain would move.")
def plan(cluster: Cluster, call: Call, query: PlanQuery) -> Plan:
    """Nothing is moved."""
    current, planned = _planned(cluster, call, query.broker, replicas=query.replicas)
    rows = [
        PlannedMove(
            topic,
            index,
            current[topic, index].leader if current[topic, index].leader >= 0 else None,
            list(current[topic, index].replicas),
            replicas[0],
            replicas,
        )
        for (topic, index), replicas in planned.items()
    ]
    copied = sum(len(set(row.then_replicas).difference(row.replicas)) for row in rows)
    moves = paged(rows, query, columns=COLUMNS, search=lambda row: f"{row.topic}-{row.partition}")
    return Plan(query.broker, query.replicas, moves, copied)


def _planned(
    cluster: Cluster, call: Call, broker: int | None, *, replicas: bool
) -> tuple[dict[Partition, Placed], Assignment]:
    """Where the partitions are, and the plan."""
    current, online = current_places(cluster)
    known = nodes_of(call)
    left_out = drains.drained(known) if known is not None else set()
    if broker is None:
        return current, balance.rebalance(current, [each for each in online if each not in left_out])
    if broker not in online:
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no broker {broker} online; there are {_ids(online)}")
    others = [each for each in online if each != broker and each not in left_out]
    try:
        return current, balance.drain(current, broker, others, replicas=replicas)
    except Impossible as error:
        raise Refused(HTTPStatus.CONFLICT, str(error)) from None


@dataclass(frozen=True)
class Rebalance:
    """Nothing has to be said."""


@action("/cluster/rebalance", summary="Spread replicas and leaders evenly over the brokers.")
def rebalance(cluster: Cluster, call: Call, form: Rebalance) -> Done:  # noqa: ARG001 - an action has a form
    """A job follows the moves."""
    _, planned = _planned(cluster, call, None, replicas=False)
    if not planned:
        return Done("Leaders and replicas are spread evenly already.", "/cluster")

    def work(progress: Progress) -> str:
        with call.console.clusters.new(call.session.security) as own:
            left = carry_out(own, planned, TIMEOUT_S, lambda which, at: not_moved(at, planned.get(which)), progress)
        return _outcome(len(planned) - len(left), left)

    call.console.jobs.start("Rebalance", call.session.user, work)
    return Done(f"{_count(len(planned))} on the move.", "/cluster")


@dataclass(frozen=True)
class Drain:
    """Which broker is drained."""

    broker: int
    replicas: bool = False
    """Move its replicas too, so that it can be removed."""


@action("/cluster/brokers/{broker}/drain", summary="Move the leaders, and with `replicas` the replicas, off a broker.")
def drain(cluster: Cluster, call: Call, form: Drain) -> Done:
    """With a supervisor's directory what was there is kept for the undo."""
    current, planned = _planned(cluster, call, form.broker, replicas=form.replicas)
    directory = call.settings.data_dir
    if directory is not None:
        drains.save(directory, form.broker, {which: list(current[which].replicas) for which in planned})

    def work(progress: Progress) -> str:
        with call.console.clusters.new(call.session.security) as own:
            left = carry_out(
                own, planned, TIMEOUT_S, lambda _, at: not_drained(at, form.broker, form.replicas), progress
            )
        return _outcome(len(planned.keys() - left.keys()), left)

    call.console.jobs.start(f"Drain broker {form.broker}", call.session.user, work)
    return Done(f"{_count(len(planned))} on the move away from broker {form.broker}.", "/cluster")


@dataclass(frozen=True)
class UndoDrain:
    """Which broker gets its partitions back."""

    broker: int


@action("/cluster/brokers/{broker}/undo-drain", summary="Give a drained broker its partitions back.")
def undo_drain(cluster: Cluster, call: Call, form: UndoDrain) -> Done:
    """What the drain has kept."""
    directory = call.settings.data_dir
    if directory is None:
        raise Refused(HTTPStatus.CONFLICT, "what a broker had before its drain is known only with 'serve --brokers N'")
    before = drains.load(directory, form.broker)
    current, _ = current_places(cluster)
    planned = {
        which: replicas
        for which, replicas in before.items()
        if which in current and not balance.is_so(current[which], replicas)
    }

    def work(progress: Progress) -> str:
        with call.console.clusters.new(call.session.security) as own:
            left = carry_out(own, planned, TIMEOUT_S, lambda which, at: not_moved(at, planned.get(which)), progress)
        if not left:
            drains.forget(directory, form.broker)
        return _outcome(len(planned) - len(left), left)

    call.console.jobs.start(f"Undo the drain of broker {form.broker}", call.session.user, work)
    return Done(f"{_count(len(planned))} on the move back to broker {form.broker}.", "/cluster")


def _outcome(moved: int, left: dict[Partition, str]) -> str:
    text = f"{_count(moved)} moved."
    if left:
        named = [f"{topic}-{index}: {reason}" for (topic, index), reason in list(left.items())[:NAMED_MAX]]
        more = f"; and {len(left) - NAMED_MAX} more" if len(left) > NAMED_MAX else ""
        text += f" {len(left)} left: {'; '.join(named)}{more}."
    return text


def _count(partitions: int) -> str:
    return f"{partitions} partition{' is' if partitions == 1 else 's are'}"


def _ids(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers))
