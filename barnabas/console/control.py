"""The channel of our broker beside Kafka's protocol: its requests, and with `--control` faults, clock and snapshots.

The channel itself knows no users: whoever has its token may do everything. So before each use the console asks the
broker, as the user of the session, whether this user may do as much to the cluster by Kafka's protocol.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.admin.cluster import allowed_operations
from barnabas.console.failures import Refused
from barnabas.testing.channel import Channel
from barnabas.testing.errors import BrokerError, RefusedError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

WATCH: Final = "CLUSTER_ACTION"
"""The operation on the cluster of who may see all requests: a follower reads all partitions with it."""
CHANGE: Final = "ALTER"
"""The operation on the cluster of who may use the test lab."""
CLUSTERS: Final = "/v1/clusters"


class Control:
    """The channel of one broker."""

    def __init__(self, address: tuple[str, str]) -> None:
        """`address` is the URL and the token."""
        self._channel = Channel(*address)
        self._operations: frozenset[str] | None = None

    def clusters(self) -> list[dict[str, Any]]:
        """The clusters of the process: `id` and `bootstrap`; 0 is the broker itself."""
        answer = self._call("GET", CLUSTERS)
        self._operations = frozenset(answer["operations"]) if "operations" in answer else frozenset()
        clusters: list[dict[str, Any]] = answer["clusters"]
        return clusters

    @property
    def has_powers(self) -> bool:
        """Whether it was started with `--control`, and does more than to show requests."""
        if self._operations is None:
            self.clusters()
        return not self._operations

    def perform(self, name: str, values: dict[str, Any] | None = None, *, cluster: int = 0) -> Any:
        """Do an operation on a cluster. `Refused` with the broker's sentence."""
        return self._call("POST", f"{CLUSTERS}/{cluster}/{name}", values)

    def close(self) -> None:
        """Close idle connections."""
        self._channel.close()

    def _call(self, method: str, path: str, values: dict[str, Any] | None = None) -> Any:
        try:
            return self._channel.call(method, path, values)
        except RefusedError as error:
            raise Refused(HTTPStatus.CONFLICT, str(error)) from None
        except BrokerError as error:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None


def check_allowed(cluster: Cluster, operation: str, what: str) -> None:
    """`Refused` unless the user may do an operation on the cluster; `what` needs it."""
    if operation not in allowed_operations(cluster):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            f"{what} is for users who may do {operation} on the cluster: "
            f"'barnabas acl allow --user USER --operation {operation.lower().replace('_', '-')} cluster' lets them",
        )
