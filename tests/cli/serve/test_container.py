"""The container image without a container engine: the entry point and the health check of the Dockerfile are run.

Only the ports, the data directory and the path of the installed script are replaced.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.start.ready import announce, entrances
from barnabas.cli.connect.configured_address import configured_address
from barnabas.client.cluster import Cluster
from tests.cli.serve.image import ROOT, Image
from tests.support.cases import for_each
from tests.support.processes.commands import run_command
from tests.support.processes.forwarder import Forwarder
from tests.support.processes.ports import free_port


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


def test_entry_point_serves_behind_a_port_mapping_and_is_healthy(script: Path, tmp_path: Path) -> None:
    """`docker run -p OUTSIDE:9092`: what a client writes and reads passes through the published port only."""
    image = Image()
    assert image.environment["KAFKA_LOG_DIRS"] == image.one("VOLUME")
    port = free_port()
    with Forwarder(("127.0.0.1", port)) as mapping:
        own = {
            "KAFKA_LISTENERS": f"PLAINTEXT://0.0.0.0:{port}",
            "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://localhost:{mapping.port}",
            "KAFKA_LOG_DIRS": str(tmp_path / "data"),
        }
        environment = _environment(script, image.environment, own)
        assert subprocess.run(image.health_check, env=environment, timeout=60, check=False).returncode == 3
        with running(image.entry_point, environment) as ready:
            assert f"[KafkaServer id=1] started on PLAINTEXT://0.0.0.0:{port}" in ready
            assert subprocess.run(image.health_check, env=environment, timeout=60, check=False).returncode == 0
            assert mapping.connections == 0, "the health check connects to the listener itself"
            _exchange(f"localhost:{mapping.port}")
            assert mapping.connections >= 2, "the bootstrap connection, and the one to the advertised address"
    assert (tmp_path / "data" / "meta.properties").exists()


def _exchange(bootstrap: str) -> None:
    run_command("produce", "t", stdin="hello\n", bootstrap=bootstrap).ok()
    read = run_command("consume", "t", "-o", "beginning", "-e", "-f", "%v\n", bootstrap=bootstrap)
    assert read.ok().stdout == "hello\n"


def test_listeners_of_the_image(tmp_path: Path) -> None:
    """One listener for the host, one for other containers; `listeners` replaces both, with all that belongs to them."""
    config = load({}, {}, None, in_container=True)
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://0.0.0.0:9092", "INTERNAL://0.0.0.0:19092"]
    host, other = entrances(config.listeners, config.advertised_listeners, in_container=True)
    assert (host.dial, host.local) == ("localhost:9092", "127.0.0.1:9092")
    assert other.dial == f"{os.uname().nodename}:19092"
    named = load({}, {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://example.org:9092"}, None, in_container=True)
    assert [way.dial for way in entrances(named.listeners, named.advertised_listeners, in_container=True)] == [
        "example.org:9092",
        f"{os.uname().nodename}:19092",
    ]
    file = tmp_path / "server.properties"
    file.write_text("listeners=OWN://0.0.0.0:29092\nlistener.security.protocol.map=OWN:PLAINTEXT\n")
    own = load({}, {}, str(file), in_container=True)
    assert [str(listener) for listener in own.listeners] == ["OWN://0.0.0.0:29092"]
    assert own.advertised_listeners == {}


@for_each(
    ("environment", "file", "expected"),
    [
        ({}, None, None),
        ({"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:19092,PLAINTEXT_HOST://0.0.0.0:9092"}, None, "127.0.0.1:19092"),
        ({"KAFKA_LISTENERS": "PLAINTEXT://:1234"}, None, "127.0.0.1:1234"),
        ({"KAFKA_LISTENERS": "PLAINTEXT://[::]:1234"}, None, "[::1]:1234"),
        ({"KAFKA_LISTENERS": "CONTROLLER://:9093,A://10.0.0.7:1234"}, None, "10.0.0.7:1234"),
        ({}, "listeners=PLAINTEXT://:2345\n", "127.0.0.1:2345"),
        ({"KAFKA_LISTENERS": "PLAINTEXT://:1234"}, "listeners=PLAINTEXT://:2345\n", "127.0.0.1:1234"),
    ],
)
def test_health_check_finds_the_configured_listener(
    tmp_path: Path, environment: dict[str, str], file: str | None, expected: str | None
) -> None:
    names = {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT,A:PLAINTEXT"}
    if "CONTROLLER" in environment.get("KAFKA_LISTENERS", ""):
        names["KAFKA_CONTROLLER_LISTENER_NAMES"] = "CONTROLLER"
    if file is not None:
        (tmp_path / "server.properties").write_text(file)
        file = str(tmp_path / "server.properties")
    assert configured_address({**names, **environment} if environment else {}, file) == expected


def test_address_that_is_given_goes_before_the_configured_one() -> None:
    listeners = {"KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:1"}
    for options in (("-b", "127.0.0.1:2"), ("-X", "brokers=127.0.0.1:2")):
        assert "127.0.0.1:2 " in run_command("health", *options, **listeners).stderr
    assert "127.0.0.1:1 " in run_command("health", **listeners).stderr
    wrong = run_command("health", KAFKA_LISTENERS="nonsense")
    assert (wrong.code, wrong.stderr.count("\n")) == (2, 1)


def test_health_check_has_room_for_a_slow_machine() -> None:
    options = dict(re.findall(r"--(\S+)=(\d+)s?", Image().one("HEALTHCHECK")))
    own = Image().health_check
    assert float(own[own.index("--timeout") + 1]) < int(options["timeout"]), "its own end is a sentence"
    assert int(options["start-period"]) >= 60


def test_image_is_not_root_and_exposes_its_ports() -> None:
    image = Image()
    assert image.one("USER") == "barnabas"
    assert image.one("EXPOSE").split() == ["9092", "19092", "8080"], "Kafka's ports, and the console's"
    order = [instruction for instruction, _ in image.instructions]
    assert order.index("RUN") < order.index("USER")
    assert "--owner=barnabas" in image.one("RUN"), "the volume belongs to the user who writes it"


def test_compose_file_serves_both_sides(script: Path, tmp_path: Path) -> None:
    """The host connects to localhost, another container to the service's name."""
    text = (ROOT / "docker-compose.yml").read_text()
    composed = dict(re.findall(r"^ {6}(KAFKA_\w+): (.+)$", text, re.MULTILINE))
    assert "healthcheck" not in text, "the image's own health check is used"
    inside, outside = free_port(), free_port()
    for name in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"):
        composed[name] = composed[name].replace(":19092", f":{inside}").replace(":9092", f":{outside}")
    own = {"KAFKA_LOG_DIRS": str(tmp_path / "data")}
    image = Image()
    environment = _environment(script, image.environment, composed, own)
    with running(image.entry_point, environment) as ready:
        assert f":{inside},PLAINTEXT_HOST://0.0.0.0:{outside}" in ready
        assert subprocess.run(image.health_check, env=environment, timeout=60, check=False).returncode == 0
        for port, advertised in ((inside, ("kafka", inside)), (outside, ("localhost", outside))):
            with Cluster(f"127.0.0.1:{port}") as cluster:
                (node,) = cluster.retry(lambda deadline: cluster.metadata([], deadline)).brokers
            assert (node.host, node.port) == advertised


def test_printed_configuration_has_a_block_for_each_listener_the_hosts_first(capsys: pytest.CaptureFixture) -> None:
    """The compose file's listeners: what a user copies from the top of the screen works on the host."""
    text = (ROOT / "docker-compose.yml").read_text()
    composed = dict(re.findall(r"^ {6}(KAFKA_\w+): (.+)$", text, re.MULTILINE))
    config = load({}, composed, None, in_container=True)
    announce(1, config.listeners, config.advertised_listeners, None, in_container=True)
    ready, *blocks = re.split(r"\n\n(?=\S.*: \S+:\d+\n)", capsys.readouterr().out)
    assert "[KafkaServer id=1] started" in ready
    assert [block.splitlines()[0] for block in blocks] == [
        "Clients on the host of this container, with -p 9092:9092 (PLAINTEXT_HOST): localhost:9092",
        "Other containers of the same network, where kafka is the name of this one (PLAINTEXT): kafka:19092",
    ]
    assert [set(re.findall(r'"([\w.]+:\d+)"', block)) for block in blocks] == [{"localhost:9092"}, {"kafka:19092"}]
