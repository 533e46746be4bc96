"""`KafkaContainer` with the methods of testcontainers: a drop-in that needs no Docker and starts in 0.2 s.

    from barnabas.testing import KafkaContainer    # instead of: from testcontainers.kafka import KafkaContainer

Arguments that describe a container (image, network, volumes, platform) are accepted and ignored. `pytest -p
barnabas.testing.testcontainers` puts it into `testcontainers.kafka`, for suites that are to stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.testing.link import TIMEOUT_S
from barnabas.testing.process import BrokerProcess

if TYPE_CHECKING:
    from typing import Self

HOST = "127.0.0.1"
OF_CONTAINERS = {
    "KAFKA_ADVERTISED_LISTENERS",
    "KAFKA_BROKER_ID",
    "KAFKA_CONTROLLER_LISTENER_NAMES",
    "KAFKA_CONTROLLER_QUORUM_VOTERS",
    "KAFKA_INTER_BROKER_LISTENER_NAME",
    "KAFKA_LISTENERS",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
    "KAFKA_LOG_DIRS",
    "KAFKA_PROCESS_ROLES",
    "KAFKA_ZOOKEEPER_CONNECT",
}
"""Variables that describe the inside of a container with Kafka: addresses, nodes and directories."""


class KafkaContainer:
    """A broker with the methods of testcontainers' `KafkaContainer`."""

    def __init__(self, image: str = "apache/kafka", port: int = 9093, **_: Any) -> None:
        """`port` is the port inside of a container: `get_exposed_port` returns the real one."""
        self.image = image
        self.port = port
        self.env: dict[str, str] = {}
        self._bind: int = 0
        self._process: BrokerProcess | None = None

    def start(self, timeout: float = TIMEOUT_S) -> Self:  # noqa: ARG002 - testcontainers' signature
        """Start it; it serves when this returns."""
        if self._process is None:
            self._process = BrokerProcess({}, listen=f"{HOST}:{self._bind}", variables=self._variables())
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:  # noqa: ARG002
        """End it."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _variables(self) -> Mapping[str, str]:
        """The variables of the container, without those that describe its inside."""
        return {name: value for name, value in self.env.items() if name not in OF_CONTAINERS}

    def get_bootstrap_server(self) -> str:
        """HOST:PORT for clients."""
        assert self._process is not None, "the container was not started"
        bootstrap: str = self._process.control["bootstrap"]
        return bootstrap

    def get_container_host_ip(self) -> str:
        """The host of its ports."""
        return HOST

    def get_exposed_port(self, port: int) -> int:  # noqa: ARG002 - there is one port
        """The port on this machine."""
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """Its log: stdout, stderr."""
        assert self._process is not None, "the container was not started"
        return b"", self._process.logged()

    def with_env(self, key: str, value: str) -> Self:
        """Set a variable: `KAFKA_NUM_PARTITIONS` is the key num.partitions, as in Kafka's image."""
        self.env[key] = value
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set variables."""
        self.env |= variables
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> Self:  # noqa: ARG002
        """Take this port of the machine."""
        self._bind = int(host or 0)
        return self

    def with_exposed_ports(self, *_: int | str) -> Self:
        """The one port is exposed."""
        return self

    def with_kraft(self) -> Self:
        """Barnabas has no ZooKeeper."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """The id of the cluster."""
        self.env["CLUSTER_ID"] = cluster_id
        return self

    def with_name(self, _: str) -> Self:
        """Containers have names; processes have not."""
        return self

    def with_network(self, _: object) -> Self:
        """The broker is on the loopback."""
        return self

    def with_network_aliases(self, *_: str) -> Self:
        """The broker is on the loopback."""
        return self

    def with_volume_mapping(self, *_: object, **__: object) -> Self:
        """The broker has a directory of its own, for its time."""
        return self

    def with_tmpfs_mount(self, *_: object, **__: object) -> Self:
        """The broker has a directory of its own, for its time."""
        return self

    def maybe_emulate_amd64(self) -> Self:
        """There is no image."""
        return self

    def waiting_for(self, _: object) -> Self:
        """It serves when `start` returns."""
        return self

    def with_kwargs(self, **_: Any) -> Self:
        """Ignore Docker's arguments."""
        return self

    def get_wrapped_container(self) -> Self:
        """The object for testcontainers' functions that wait: it has `status` and `reload`."""
        return self

    @property
    def status(self) -> str:
        """As Docker calls it."""
        return "exited" if self._process is None else "running"

    def reload(self) -> None:
        """`status` is always up to date."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
