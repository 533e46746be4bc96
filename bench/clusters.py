"""A cluster of Barnabas on this machine as one server: `barnabas serve --brokers N` with all its nodes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from bench.ports import free_port
from bench.servers import ROOT, BarnabasServer


class BarnabasCluster(BarnabasServer):
    """A supervisor with its brokers and controller; figures are those of all processes."""

    name = "barnabas-cluster"

    def __init__(
        self,
        data_dir: Path,
        *,
        brokers: int = 3,
        config: dict[str, str] | None = None,
        port: int = 0,
        checkout: Path = ROOT,
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(data_dir, config=config, port=port, checkout=checkout)
        self.brokers = brokers
        self._options = options
        self._addresses: list[str] = []

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(self._addresses) or super().bootstrap

    def _command(self) -> tuple[list[str], dict[str, str]]:
        self.port = self.port or _following_ports(self.brokers)
        command, environment = super()._command()
        return [*command, "--brokers", str(self.brokers), *self._options], environment

    def _is_ready(self) -> bool:
        try:
            text = self._ready_file.read_text().strip()
        except FileNotFoundError:
            return False
        self._addresses = text.split(",") if text else []
        return len(self._addresses) == self.brokers

    def kill9(self) -> None:
        """Kill the supervisor and all nodes at once."""
        for process in reversed(self.processes()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        super().kill9()

    def log(self) -> str:
        """The ends of the outputs of all nodes."""
        nodes = "".join(f"--- {path.name}\n{path.read_text()[-3000:]}\n" for path in self.data_dir.glob("*.log"))
        return super().log() + nodes


def _following_ports(count: int) -> int:
    """The first of so many free ports in a row; the others are not reserved."""
    from barnabas.cluster.ports import is_free

    while True:
        first = free_port()
        if all(is_free("127.0.0.1", port) for port in range(first, first + count)):
            return first
