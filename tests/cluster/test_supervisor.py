"""`barnabas serve --brokers N` and the commands that work with its nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from barnabas.cluster import state
from tests.cli.conftest import COMMAND, Ran, call_command, clean_environment, run_command
from tests.cluster.clusters import wait_for

END_S = 60.0
"""How long a supervisor may take for a clean stop, seconds."""


class Serving:
    """A supervisor whose ready file is waited for."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.data_dir = str(folder / "cluster")
        self.ready = folder / "ready"
        self.ready.unlink(missing_ok=True)
        command = [*COMMAND, "serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", self.data_dir]
        command += ["--ready-file", str(self.ready), *arguments]
        with (folder / "err").open("wb") as err, (folder / "out").open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=clean_environment())
        wait_for(lambda: self.ready.exists() or self.process.poll() is not None, "the ready file")
        assert self.process.poll() is None, self.told()

    def told(self) -> str:
        """What it has written to stderr."""
        return (self.folder / "err").read_text()

    def command(self, *arguments: str) -> Ran:
        """`barnabas cluster ...` with this cluster's directory."""
        return call_command("cluster", *arguments, "--data-dir", self.data_dir)

    def statuses(self) -> list[str]:
        """The states that `status` shows; empty while a broker that has died is asked, before its session has ended."""
        ran = self.command("status", "-o", "json")
        return [row["state"] for row in ran.json["brokers"]] if ran.code in (0, 1) else []

    def states(self) -> dict[int, str]:
        """The states of the nodes as the supervisor sees them."""
        return {node.node_id: node.state for node in state.read(self.data_dir).nodes}

    def pids(self) -> dict[int, int | None]:
        """The process ids of the nodes."""
        return {node.node_id: node.pid for node in state.read(self.data_dir).nodes}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A cluster of three for the tests of this file, which heal it."""
    made = Serving(tmp_path_factory.mktemp("serving"))
    yield made
    if made.process.poll() is None:
        made.process.send_signal(signal.SIGTERM)
        made.process.wait(END_S)


def test_one_ready_line_has_all_addresses(serving: Serving) -> None:
    addresses = serving.ready.read_text().strip().split(",")
    assert len(addresses) == 3
    out = (serving.folder / "out").read_text()
    assert out.count("started on") == 1
    assert f'"bootstrap.servers": "{",".join(addresses)}"' in out


def test_topics_have_three_replicas_of_which_two_must_be_in_sync(serving: Serving) -> None:
    bootstrap = serving.ready.read_text().strip()
    call_command("topic", "create", "replicated", "-p", "2", bootstrap=bootstrap).ok()
    rows = call_command("topic", "describe", "replicated", "-o", "json", bootstrap=bootstrap).ok().json
    assert all(len(partition["replicas"]) == 3 for partition in rows[0]["partitions"])
    configs = call_command("config", "get", "topic", "replicated", "min.insync.replicas", bootstrap=bootstrap)
    assert configs.ok().lines[-1].split()[:2] == ["min.insync.replicas", "2"]


def test_status_shows_nodes_and_loads(serving: Serving) -> None:
    told = serving.command("status", "-o", "json").ok().json
    assert [row["state"] for row in told["brokers"]] == ["online"] * 3
    assert all(row["pid"] == serving.pids()[row["broker"]] for row in told["brokers"])
    assert all(row["cpu"].endswith("%") and row["memory"].endswith("MB") for row in told["brokers"])
    assert [row["controller"] for row in told["controllers"]] == [3000]


def test_a_killed_broker_is_told_and_started_again(serving: Serving) -> None:
    pid = int(serving.command("pid", "2").ok().stdout)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: serving.states()[2] == "died", "the death")
    wait_for(lambda: f"broker 2 (pid {pid}) ended: killed by SIGKILL" in serving.told(), "the sentence")
    assert serving.command("pid", "2").code == 3
    states = ["online", "offline", "online"]
    wait_for(lambda: serving.statuses() == states, lambda: f"{states}: they are {serving.statuses()}")
    assert serving.command("status").code == 1
    serving.command("start", "2").ok()
    assert serving.states()[2] == "running"


def test_a_broker_is_stopped_and_killed_by_command(serving: Serving) -> None:
    assert "exit code 0" in serving.command("stop", "3").ok().stdout
    again = serving.command("stop", "3")
    assert again.code == 1
    assert "broker 3 does not run" in again.stderr
    serving.command("start", "3").ok()
    assert "is killed" in serving.command("kill", "3").ok().stdout
    serving.command("start", "3").ok()
    assert "there is no node 9" in serving.command("stop", "9").stderr


def test_a_second_supervisor_is_refused(serving: Serving) -> None:
    ran = run_command("serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", serving.data_dir)
    assert ran.code == 2
    assert "runs already" in ran.stderr


def test_it_ends_cleanly_and_starts_with_its_data_again(serving: Serving) -> None:
    serving.process.send_signal(signal.SIGINT)
    assert serving.process.wait(END_S) == 0, serving.told()
    assert set(serving.states().values()) == {"stopped"}
    status = serving.command("status", "-o", "json")
    assert [row["state"] for row in status.json["brokers"]] == ["offline"] * 3
    again = Serving(serving.folder)
    try:
        bootstrap = again.ready.read_text().strip()
        assert "replicated" in call_command("topic", "list", bootstrap=bootstrap).ok().stdout
        pids = [pid for pid in again.pids().values() if pid is not None]
        again.process.kill()
        again.process.wait()
        wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), "the nodes' end with their supervisor")
        status = again.command("status", "-o", "json")
        assert "does not run any more" in status.stderr
        assert [row["state"] for row in status.json["brokers"]] == ["offline"] * 3
    finally:
        again.process.kill()
        again.process.wait()


@pytest.mark.parametrize("moment", ["importing", "starting"])
def test_ctrl_c_while_it_starts_ends_it_cleanly(tmp_path: Path, moment: str) -> None:
    """A signal between the starts of two nodes left the second running, and the supervisor with it."""
    directory = tmp_path / "cluster"
    command = [*COMMAND, "serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", str(directory)]
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(command, stdout=err, stderr=err, env=clean_environment())
    shown = directory / ("control" if moment == "importing" else state.FILE)
    wait_for(lambda: shown.exists() and (moment == "importing" or shown.stat().st_size > 0), "the start")
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(END_S) == 0
    finally:
        process.kill()
    assert (tmp_path / "err").read_text() == ""
    if moment == "starting":
        assert [node.name for node in state.read(str(directory)).nodes if node.pid is not None] == []


@pytest.mark.soak
def test_restart_starts_a_broker_again(tmp_path: Path) -> None:
    serving = Serving(tmp_path, "--restart")
    before = serving.pids()[1]
    assert before is not None
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: serving.pids()[1] not in (None, before) and serving.states()[1] == "running", "the next process")
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(END_S) == 0


@pytest.mark.soak
def test_add_drain_and_rebalance(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    bootstrap = serving.ready.read_text().strip()
    call_command("topic", "create", "moved", "-p", "8", bootstrap=bootstrap).ok()
    assert "broker 4 runs" in serving.command("add").ok().stdout
    assert call_command("cluster", "rebalance", "--dry-run", bootstrap=bootstrap).ok().stdout.count("moved-") > 2
    serving.command("rebalance").ok()

    def replicas() -> dict[int, int]:
        rows = json.loads(serving.command("status", "-o", "json").stdout)["brokers"]
        return {row["broker"]: row["replicas"] for row in rows}

    assert sorted(replicas().values()) == [6, 6, 6, 6]
    serving.command("drain", "1", "--replicas").ok()
    assert replicas()[1] == 0
    status = serving.command("status", "-o", "json").ok().json
    assert status["brokers"][0]["state"] == "draining"
    serving.command("drain", "1", "--undo").ok()
    assert replicas()[1] == 6
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(END_S) == 0


def test_a_mistake_ends_all_with_one_sentence(tmp_path: Path) -> None:
    ran = run_command(
        *("serve", "--brokers", "2", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "c")),
        *("--set", "2:num.partitions=0"),
    )
    assert ran.code == 2
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert "num.partitions" in ran.stderr
    assert "broker 2" in ran.stderr
