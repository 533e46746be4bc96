"""What scripts rely on in `barnabas serve`: ready line, ready file, exit codes, one-line error messages."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console.serving import Serving
from tests.support.processes.commands import COMMAND, clean_environment, run_command


def test_ready_line_names_the_address_and_satisfies_those_who_grep(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with Serving("--listen", "127.0.0.1:0", "--ready-file", str(ready)) as serving:
        host, _, port = ready.read_text().strip().rpartition(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        assert "[KafkaServer id=1] started" in serving.first_line
        assert f"127.0.0.1:{port}" in serving.first_line
        code, out, _ = serving.stop(signal.SIGTERM)
    assert code == 0
    assert f'"bootstrap.servers": "127.0.0.1:{port}"' in out
    assert f'bootstrap_servers="127.0.0.1:{port}"' in out
    assert f'"kafka.bootstrap.servers", "127.0.0.1:{port}"' in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly_and_its_temporary_directory_goes(tmp_path: Path, number: signal.Signals) -> None:
    with Serving("--listen", "127.0.0.1:0", TMPDIR=str(tmp_path)) as serving:
        assert "started" in serving.first_line
        assert list(tmp_path.iterdir()), "the data is kept in the temporary directory"
        assert serving.stop(number)[0] == 0
    assert list(tmp_path.iterdir()) == []


INTERRUPTED_AT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
place = sys.argv.pop(1)
class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == place:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupter())
from barnabas.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("place", ["barnabas.platforms", "argparse", "barnabas.supervise.supervisor", "trio"])
def test_an_interrupt_while_modules_are_imported_ends_it_without_a_word(tmp_path: Path, place: str) -> None:
    brokers = ["--brokers", "3"] if "supervise" in place else []
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, place, "serve", "--listen", "127.0.0.1:0", *brokers],
        env=clean_environment() | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


def _mistake(*arguments: str, **environment: str) -> str:
    """Run `serve` with invalid options, and return its one-line error message."""
    ran = run_command("serve", *arguments, **environment)
    assert ran.code == 2, ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("[")]
    assert len(lines) == 1, ran.stderr
    return lines[0]


def test_taken_port_is_one_sentence_that_names_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = _mistake("--listen", f"127.0.0.1:{port}")
    assert str(port) in sentence
    assert "in use" in sentence
    if sys.platform == "linux":
        assert f"(process {os.getpid()}: " in sentence
    assert "--listen takes another address" in sentence


def test_locked_data_directory_is_one_sentence_that_names_who_has_it(tmp_path: Path) -> None:
    with Serving("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")) as serving:
        assert "started" in serving.first_line
        sentence = _mistake("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))
    assert str(tmp_path / "data") in sentence
    if sys.platform == "linux":
        assert f"(process {serving.process.pid}: " in sentence


@pytest.mark.parametrize("same", [True, False], ids=["one file", "two files"])
def test_the_ready_line_stands_once_where_stdout_and_stderr_are_one(tmp_path: Path, same: bool) -> None:
    ready = tmp_path / "ready"
    environment = clean_environment()
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--ready-file", str(ready)],
            stdout=out,
            stderr=out if same else err,
            env=environment,
        )
        while not (ready.exists() and b"Spark" in (tmp_path / "out").read_bytes()):
            assert process.poll() is None
        process.terminate()
        assert process.wait(30) == 0
    line = b"[KafkaServer id=1] started"
    assert (tmp_path / "out").read_bytes().count(line) == 1
    assert (tmp_path / "err").read_bytes().count(line) == (0 if same else 1)


def test_data_directory_of_another_node_or_cluster_is_one_sentence(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Serving("--listen", "127.0.0.1:0", "--data-dir", data, "--set", "node.id=5") as serving:
        assert serving.stop(signal.SIGTERM)[0] == 0
    assert "belongs to node 5, not to node 1" in _mistake("--listen", "127.0.0.1:0", "--data-dir", data)
    options = ("--listen", "127.0.0.1:0", "--data-dir", data, "--set", "node.id=5")
    assert "not to another-cluster" in _mistake(*options, CLUSTER_ID="another-cluster")


def test_unknown_key_on_the_command_line_names_the_nearest() -> None:
    sentence = _mistake("--listen", "127.0.0.1:0", "--set", "num.partitons=3")
    assert "num.partitons" in sentence
    assert "num.partitions" in sentence


def test_bad_value_is_one_sentence() -> None:
    assert "num.partitions" in _mistake("--listen", "127.0.0.1:0", "--set", "num.partitions=many")


def test_bad_value_in_the_environment_is_one_sentence() -> None:
    assert "num.partitions" in _mistake("--listen", "127.0.0.1:0", KAFKA_NUM_PARTITIONS="many")


def test_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    assert "nowhere.properties" in _mistake("--config", str(tmp_path / "nowhere.properties"))


def test_data_directory_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in _mistake("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file"))


def test_ready_file_that_cannot_be_written_is_one_sentence() -> None:
    assert "/no/such/dir/ready" in _mistake("--listen", "127.0.0.1:0", "--ready-file", "/no/such/dir/ready")


def test_unknown_key_of_the_environment_is_a_warning() -> None:
    with Serving("--listen", "127.0.0.1:0", KAFKA_NO_SUCH_KEY="1") as serving:
        assert "started" in serving.first_line
        code, _, err = serving.stop(signal.SIGTERM)
    assert code == 0
    assert "no.such.key" in err


def test_command_line_goes_before_environment_before_file(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=2\nlog.retention.hours=2\nlog.segment.bytes=2000000\n")
    ready = tmp_path / "ready"
    options = ("--listen", "127.0.0.1:0", "--config", str(properties), "--ready-file", str(ready))
    environment = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_LOG_RETENTION_HOURS": "3"}
    with Serving(*options, "--set", "num.partitions=4", **environment) as serving:
        assert "started" in serving.first_line
        keys = ("num.partitions", "log.retention.hours", "log.segment.bytes")
        ran = run_command("config", "get", "broker", "1", *keys, "-o", "json", bootstrap=ready.read_text().strip())
    values = {row["key"]: row["value"] for row in ran.ok().json}
    assert values == {"num.partitions": "4", "log.retention.hours": "3", "log.segment.bytes": "2000000"}


def test_help_explains_every_option() -> None:
    text = run_command("serve", "--help").ok().stdout
    for option in ("--listen", "--data-dir", "--config", "--set", "--profile", "--ready-file", "--log-level"):
        assert option in text
    assert text == run_command("serve", "-h").stdout
