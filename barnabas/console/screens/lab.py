"""Test lab: faults by rule, the clock, snapshots and events of coordinators, of a broker with `--control`.

What the operations mean is described in docs/testing.md; this screen sends them as the test kit does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.console.console import Call
from barnabas.console.control import CHANGE, Control, check_allowed
from barnabas.console.failures import Refused
from barnabas.console.pages import link
from barnabas.console.resources import Done, action, resource
from barnabas.console.values import BadInput
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name
from barnabas.wire.errors import ErrorCode

NOT_AVAILABLE = (
    "The test lab is for a broker with a control channel: 'barnabas serve --control --console' starts one, for tests "
    "only, since the channel can change everything."
)
CONDITIONS = ("topic", "partition", "group", "transactional_id", "client_id", "principal")
ActionName = Literal["error", "commit_then_error", "delay", "drop", "drop_after", "half", "corrupt", "throttle", "hold"]
ACTIONS = {
    "error": "answer with an error",
    "commit_then_error": "do it, then answer with an error",
    "delay": "answer later",
    "drop": "close the connection before it is done",
    "drop_after": "do it, then close the connection",
    "half": "send half of the response, then close",
    "corrupt": "change bytes of the records (Fetch)",
    "throttle": "tell the client to wait",
    "hold": "hold it until it is released",
}
Event = Literal["rebalance", "expire_member", "fence_instance", "fence_producer", "reload_coordinator"]
EVENTS = {
    "rebalance": "have every member of the group join again",
    "expire_member": "end the session of a member, or of all",
    "fence_instance": "fence a static member by its instance id",
    "fence_producer": "fence the producer of a transactional id, and abort its transaction",
    "reload_coordinator": "unload the coordinator and load it again",
}


@dataclass(frozen=True)
class LabQuery:
    """Which cluster of the process; 0 is the broker itself."""

    cluster_number: Annotated[int, msgspec.Meta(ge=0)] = 0


@dataclass(frozen=True)
class FaultRow:
    """A rule."""

    rule: int
    condition: str
    action: str
    trigger: str
    seen: int
    hits: int
    held: int


@dataclass(frozen=True)
class ClusterRow:
    """A cluster of the process."""

    id: int
    bootstrap: str


@dataclass(frozen=True)
class LabView:
    """The state of the lab."""

    available: bool
    why: str
    cluster_number: int
    clusters: list[ClusterRow]
    now_ms: int
    is_frozen: bool
    faults: list[FaultRow]
    snapshots: list[int]
    apis: list[str]
    errors: list[str]
    actions: dict[str, str]
    events: dict[str, str]


@resource("/lab", template="lab/lab.html", summary="The test lab: faults, clock, snapshots of a broker with --control.")
def lab(cluster: Cluster, call: Call, query: LabQuery) -> LabView:
    """What is there now."""
    number = query.cluster_number
    if call.console.control is None or not call.console.control.has_powers:
        return LabView(False, NOT_AVAILABLE, number, [], 0, False, [], [], [], [], {}, {})
    control = _control(cluster, call)
    clock = control.perform("clock", cluster=number)
    return LabView(
        available=True,
        why="",
        cluster_number=number,
        clusters=[ClusterRow(each["id"], each["bootstrap"]) for each in control.clusters()],
        now_ms=clock["now_ms"],
        is_frozen=clock["frozen"],
        faults=[_fault(rule) for rule in control.perform("fault_list", cluster=number)["rules"]],
        snapshots=control.perform("snapshot_list", cluster=number)["snapshots"],
        apis=sorted(api_name(key) for key in ApiKey),
        errors=sorted(code.name for code in ErrorCode if code != ErrorCode.NONE),
        actions=ACTIONS,
        events=EVENTS,
    )


def _fault(rule: dict[str, Any]) -> FaultRow:
    conditions = [f"{name}={rule[name]}" for name in ("api", *CONDITIONS) if name in rule]
    trigger = [f"{name}={rule[name]}" for name in ("nth", "count", "probability") if rule.get(name) not in (None, 1.0)]
    return FaultRow(
        rule["rule"],
        ", ".join(conditions) or "every request",
        rule["action"],
        ", ".join(trigger) or "each time",
        rule["seen"],
        rule["hits"],
        rule["held"],
    )


def _control(cluster: Cluster, call: Call) -> Control:
    """The channel, for a user who may change the cluster. `Refused`."""
    control = call.console.control
    if control is None or not control.has_powers:
        raise Refused(HTTPStatus.CONFLICT, NOT_AVAILABLE)
    check_allowed(cluster, CHANGE, "To use the test lab")
    return control


def _here(number: int) -> str:
    return link("/lab", cluster_number=number)


@dataclass(frozen=True)
class AddFault:
    """A rule: which requests, what happens to them, and when. An empty condition is for all."""

    action: ActionName
    cluster_number: int = 0
    api: str = ""
    topic: str = ""
    partition: Annotated[int, msgspec.Meta(ge=0)] | None = None
    group: str = ""
    transactional_id: str = ""
    client_id: str = ""
    principal: str = ""
    error: str = ""
    """The name of an error, for `error` and `commit_then_error`."""
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """For `delay` and `throttle`."""
    nth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Only the nth request that the conditions match."""
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """At most so often."""
    probability: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0

    def values(self) -> dict[str, Any]:
        """The request of the control channel."""
        if self.action in ("error", "commit_then_error") and not self.error:
            raise BadInput("error: which one?")
        actions: dict[str, dict[str, Any]] = {
            "error": {"error": self.error},
            "commit_then_error": {"commit_then_error": self.error},
            "delay": {"delay": self.seconds},
            "drop": {"drop": "before"},
            "drop_after": {"drop": "after"},
            "half": {"half": True},
            "corrupt": {"corrupt": True},
            "throttle": {"throttle_ms": int(self.seconds * 1000)},
            "hold": {"hold": True},
        }
        named = {name: getattr(self, name) for name in ("api", *CONDITIONS, "nth", "count")}
        chosen = {name: value for name, value in named.items() if value not in ("", None)}
        return chosen | actions[self.action] | ({} if self.probability == 1.0 else {"probability": self.probability})


@action("/lab/add-fault", summary="Add a rule for faults.")
def add_fault(cluster: Cluster, call: Call, form: AddFault) -> Done:
    """It is in effect at once."""
    rule = _control(cluster, call).perform("fault_add", form.values(), cluster=form.cluster_number)
    return Done(f"added rule {rule['rule']}: {rule['action']}", _here(form.cluster_number))


@dataclass(frozen=True)
class FaultForm:
    """A rule; None: all."""

    rule: int | None = None
    cluster_number: int = 0


@action("/lab/remove-fault", summary="Remove a rule, or all; requests that it holds go on.")
def remove_fault(cluster: Cluster, call: Call, form: FaultForm) -> Done:
    """Clients are served again as without it."""
    values = {} if form.rule is None else {"rule": form.rule}
    _control(cluster, call).perform("fault_remove", values, cluster=form.cluster_number)
    return Done("removed all rules" if form.rule is None else f"removed rule {form.rule}", _here(form.cluster_number))


@dataclass(frozen=True)
class ReleaseForm:
    """A rule, and how many of its requests; None: all, and the rule is removed."""

    rule: int
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cluster_number: int = 0


@action("/lab/release-fault", summary="Let requests go on that a rule holds.")
def release_fault(cluster: Cluster, call: Call, form: ReleaseForm) -> Done:
    """In the order in which they came."""
    values = {"rule": form.rule} | ({} if form.count is None else {"count": form.count})
    released = _control(cluster, call).perform("fault_release", values, cluster=form.cluster_number)["released"]
    return Done(f"released {released} requests of rule {form.rule}", _here(form.cluster_number))


@dataclass(frozen=True)
class ClockForm:
    """What happens to the clock."""

    change: Literal["freeze", "resume", "advance", "jump"]
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """For `advance`."""
    to: str = ""
    """For `jump`: a date as 2026-01-31T12:00, in UTC."""
    cluster_number: int = 0


@action("/lab/clock", summary="Freeze, resume, advance or set the clock.", timeout_s=60.0)
def change_clock(cluster: Cluster, call: Call, form: ClockForm) -> Done:
    """Timers, retention and transactions of the cluster follow its clock."""
    values: dict[str, Any] = {}
    if form.change == "advance":
        values = {"seconds": form.seconds}
    elif form.change == "jump":
        values = {"to_ms": _ms(form.to)}
    state = _control(cluster, call).perform(f"clock_{form.change}", values, cluster=form.cluster_number)
    when = datetime.fromtimestamp(state["now_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return Done(f"the clock is at {when}, and {'stands' if state['frozen'] else 'runs'}", _here(form.cluster_number))


def _ms(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"to: must be a date as 2026-01-31T12:00, not {text!r}") from None
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


@dataclass(frozen=True)
class SnapshotForm:
    """What happens with a snapshot."""

    change: Literal["take", "save", "remove", "restore", "fork"]
    snapshot: int | None = None
    directory: str = ""
    """For `save`: a new directory on the broker's machine."""
    cluster_number: int = 0


@action("/lab/snapshot", summary="Take, save, remove or restore a snapshot, or open a cluster from it.", timeout_s=60.0)
def change_snapshots(cluster: Cluster, call: Call, form: SnapshotForm) -> Done:
    """The broker itself cannot be set back: fork its snapshot, which opens a cluster at an address of its own."""
    control, number = _control(cluster, call), form.cluster_number
    if form.change == "take":
        taken = control.perform("snapshot", cluster=number)["snapshot"]
        return Done(f"took snapshot {taken}", _here(number))
    if form.snapshot is None:
        raise BadInput("snapshot: which one?")
    values: dict[str, Any] = {"snapshot": form.snapshot}
    if form.change == "save":
        control.perform("save_snapshot", values | {"path": form.directory}, cluster=number)
        return Done(
            f"saved snapshot {form.snapshot}: 'barnabas serve --data-dir {form.directory}' serves it", _here(number)
        )
    if form.change == "remove":
        control.perform("remove_snapshot", values, cluster=number)
        return Done(f"removed snapshot {form.snapshot}", _here(number))
    if form.change == "restore":
        control.perform("restore", values, cluster=number)
        return Done(f"set cluster {number} back to snapshot {form.snapshot}", _here(number))
    forked = control.perform("fork", values, cluster=number)
    return Done(f"opened cluster {forked['id']} at {forked['bootstrap']}", _here(forked["id"]))


@dataclass(frozen=True)
class EventForm:
    """An event of a coordinator."""

    event: Event
    group: str = ""
    member: str = ""
    instance: str = ""
    transactional_id: str = ""
    cluster_number: int = 0


@action("/lab/event", summary="Have a coordinator do something: a rebalance, the end of a session, a fence, a reload.")
def coordinator_event(cluster: Cluster, call: Call, form: EventForm) -> Done:
    """As in docs/testing.md."""
    fields = {
        "rebalance": ("group",),
        "expire_member": ("group", "member"),
        "fence_instance": ("group", "instance"),
        "fence_producer": ("transactional_id",),
        "reload_coordinator": ("group", "transactional_id"),
    }[form.event]
    values = {name: getattr(form, name) for name in fields if getattr(form, name)}
    if not values:
        raise BadInput(f"{fields[0]}: which one?")
    _control(cluster, call).perform(form.event, values, cluster=form.cluster_number)
    subject = ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in values.items())
    return Done(f"done: {EVENTS[form.event]} ({subject})", _here(form.cluster_number))
