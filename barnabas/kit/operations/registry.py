"""The operations of the control channel on one cluster, by name: `POST /v1/clusters/N/NAME` with an object of JSON.

Each is `async (cluster, values) -> answer`, marked with `@operation(NAME, keys...)`, in a module of `OPERATIONS`; the
keys are all that a request may have. A module is imported with its first request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.values import Values

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster

Operation: TypeAlias = Callable[["VirtualCluster", Values], Awaitable[Any]]

OPERATIONS: Final[dict[str, str]] = {
    "create_topic": "topics",
    "topic": "topics",
    "records": "topics",
    "wait_for_records": "topics",
    "produce": "topics",
    "trim": "topics",
    "groups": "groups",
    "group": "groups",
    "wait_for_group": "groups",
    "request": "requests",
    "kill_broker": "nodes",
    "start_broker": "nodes",
    "elect": "nodes",
    "rebalance": "coordinator_events",
    "expire_member": "coordinator_events",
    "fence_instance": "coordinator_events",
    "fence_producer": "coordinator_events",
    "reload_coordinator": "coordinator_events",
    "snapshot": "snapshots",
    "snapshot_list": "snapshots",
    "restore": "snapshots",
    "fork": "snapshots",
    "save_snapshot": "snapshots",
    "remove_snapshot": "snapshots",
    "clock": "clock",
    "clock_freeze": "clock",
    "clock_advance": "clock",
    "clock_jump": "clock",
    "clock_resume": "clock",
    "exchanges": "exchanges",
    "recorded": "recorded",
    "clients": "recorded",
    "timeline": "recorded",
    "lint": "recorded",
    "fault_add": "faults",
    "fault_list": "faults",
    "fault_remove": "faults",
    "fault_wait": "faults",
    "fault_release": "faults",
    "fault_questions": "faults",
    "fault_answer": "faults",
}
"""The operations, each with its module in `barnabas.kit.operations`."""

_operations: dict[str, tuple[Operation, tuple[str, ...]]] = {}


def operation(name: str, *keys: str) -> Callable[[Operation], Operation]:
    """Mark a function as an operation that takes these keys."""

    def register(function: Operation) -> Operation:
        _operations[name] = function, keys
        return function

    return register


async def perform(cluster: VirtualCluster, name: str, values: dict[str, Any]) -> object:
    """Do an operation. ControlError if it refuses the request."""
    if cluster.session is not None and cluster.session.is_replay:
        raise ControlError("This cluster answers from a cassette: there is no broker to ask, and no log")
    module = OPERATIONS.get(name)
    if module is None:
        raise NotFoundError(f"There is no operation {name!r}")
    if name not in _operations:
        import_module(f"barnabas.kit.operations.{module}")
    function, keys = _operations[name]
    request = Values(values)
    request.only(keys)
    cluster.performed.add(name)
    return await function(cluster, request)
