"""The container image without a container engine: the entry point and the health check of the Dockerfile are run.

Only the ports, the data directory and the path of the installed script are replaced.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.client.cluster import Cluster
from bench.ports import free_port

ROOT = Path(__file__).resolve().parents[2]


class Image:
    """The instructions of the Dockerfile."""

    def __init__(self) -> None:
        text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
        self.instructions = [
            tuple(line.split(None, 1)) for line in text.splitlines() if line and not line.startswith("#")
        ]

    def one(self, name: str) -> str:
        """The argument of the only instruction of this name."""
        (argument,) = [argument for instruction, argument in self.instructions if instruction == name]
        return argument

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.one("ENV").split())

    @property
    def entry_point(self) -> list[str]:
        return json.loads(self.one("ENTRYPOINT"))

    @property
    def health_check(self) -> list[str]:
        return json.loads(self.one("HEALTHCHECK").partition("CMD ")[2])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A directory with a `barnabas` script as pip installs it."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    path = bin_dir / "barnabas"
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom barnabas.cli import main\nsys.exit(main())\n")
    path.chmod(0o755)
    return bin_dir


def _environment(script: Path, *layers: dict[str, str]) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "BARNABAS_"))}
    clean |= {"PATH": f"{script}:{clean['PATH']}", "PYTHONPATH": str(ROOT)}
    for layer in layers:
        clean |= layer
    return clean


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[str]:
    """Run the command and yield its ready line. It must exit with code 0 on SIGTERM."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err.decode()


def test_entry_point_serves_on_every_interface_and_is_healthy(script: Path, tmp_path: Path) -> None:
    image = Image()
    assert image.environment["KAFKA_LISTENERS"] == "PLAINTEXT://0.0.0.0:9092"
    assert image.environment["KAFKA_LOG_DIRS"] == image.one("VOLUME")
    port = free_port()
    own = {"KAFKA_LISTENERS": f"PLAINTEXT://0.0.0.0:{port}", "KAFKA_LOG_DIRS": str(tmp_path / "data")}
    environment = _environment(script, image.environment, own)
    check = {**environment, "BARNABAS_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}
    assert subprocess.run(image.health_check, env=check, timeout=30, check=False).returncode == 3
    with running(image.entry_point, environment) as ready:
        assert f"[KafkaServer id=1] started on PLAINTEXT://0.0.0.0:{port}" in ready
        assert subprocess.run(image.health_check, env=check, timeout=30, check=False).returncode == 0
    assert (tmp_path / "data" / "meta.properties").exists()


def test_image_is_not_root_and_exposes_kafkas_port() -> None:
    image = Image()
    assert image.one("USER") == "barnabas"
    assert image.one("EXPOSE") == "9092"
    order = [instruction for instruction, _ in image.instructions]
    assert order.index("RUN") < order.index("USER")
    assert "--owner=barnabas" in image.one("RUN"), "the volume belongs to the user who writes it"


def test_compose_file_serves_both_sides(script: Path, tmp_path: Path) -> None:
    """The host connects to localhost, another container to the service's name."""
    text = (ROOT / "docker-compose.yml").read_text()
    composed = dict(re.findall(r"^ {6}(KAFKA_\w+): (.+)$", text, re.MULTILINE))
    assert json.loads(re.search(r"test: (\[.*\])", text)[1]) == ["CMD", "barnabas", "health"]
    inside, outside = free_port(), free_port()
    for name in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"):
        composed[name] = composed[name].replace(":19092", f":{inside}").replace(":9092", f":{outside}")
    own = {"KAFKA_LOG_DIRS": str(tmp_path / "data")}
    image = Image()
    with running(image.entry_point, _environment(script, image.environment, composed, own)) as ready:
        assert f":{inside},PLAINTEXT_HOST://0.0.0.0:{outside}" in ready
        for port, advertised in ((inside, ("kafka", inside)), (outside, ("localhost", outside))):
            with Cluster(f"127.0.0.1:{port}") as cluster:
                (node,) = cluster.retry(lambda deadline: cluster.metadata([], deadline)).brokers
            assert (node.host, node.port) == advertised
